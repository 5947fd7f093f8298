// add: C = A + B, element by element.
//   from     add.py by tile2c 0.1.0
//   target   ascendc:ascend910b (never run on silicon)
//   again    tile2c add.py -o . --target ascendc:ascend910b
//   compile  bisheng -x asc --npu-arch=dav-2201 -O2 -fPIC -shared add.ascendc.cpp -o add.so
//   launch   40 cores, or fewer: at most (N + 1023) / 1024 have work
//   sizes    N is free
//   memory   24576 of 196352 bytes of a core's UB
//   text     sha256 92435aa1d3e6  (edit freely: `tile2c --merge` keeps your changes)
#include "kernel_operator.h"

using namespace AscendC;

constexpr int32_t block_N = 1024;

// Copies `count` neighbours to a tile. Whole 32-byte blocks arrive: zeros follow the last element.
template <typename T>
static __aicore__ inline void copy_in_row(const LocalTensor<T>& tile, const GlobalTensor<T>& tensor,
                                          int32_t count) {
    constexpr int32_t block = 32 / sizeof(T);
    const int32_t zeros = (block - count % block) % block;
    const DataCopyExtParams shape(1, count * sizeof(T), 0, 0, 0);
    DataCopyPad(tile, tensor, shape, DataCopyPadExtParams<T>(true, 0, zeros, T{}));
}

// Copies `count` neighbours of a tile to global memory and nothing beyond them.
template <typename T>
static __aicore__ inline void copy_out_row(const GlobalTensor<T>& tensor,
                                           const LocalTensor<T>& tile, int32_t count) {
    DataCopyPad(tensor, tile, DataCopyExtParams(1, count * sizeof(T), 0, 0, 0));
}

extern "C" __global__ __aicore__ void add(GM_ADDR A,  // float [N]
                                          GM_ADDR B,  // float [N]
                                          GM_ADDR C,  // float [N]
                                          int32_t N) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);  // vector cores: nothing here needs the cube
    GlobalTensor<float> A_gm;
    A_gm.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(A));
    GlobalTensor<float> B_gm;
    B_gm.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(B));
    GlobalTensor<float> C_gm;
    C_gm.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(C));

    TPipe pipe;
    // A_tile: float [block_N], filled by MTE2 for V, double buffered
    TQue<TPosition::VECIN, 1> A_tile_queue;
    pipe.InitBuffer(A_tile_queue, 2, block_N * sizeof(float));
    // B_tile: float [block_N], filled by MTE2 for V, double buffered
    TQue<TPosition::VECIN, 1> B_tile_queue;
    pipe.InitBuffer(B_tile_queue, 2, block_N * sizeof(float));
    // C_tile: float [block_N], filled by V for MTE3, double buffered
    TQue<TPosition::VECOUT, 1> C_tile_queue;
    pipe.InitBuffer(C_tile_queue, 2, block_N * sizeof(float));

    // with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx
    // each core takes every GetBlockNum()-th block
    for (int32_t bx = GetBlockIdx(); bx < (N + block_N - 1) / block_N; bx += GetBlockNum()) {
        const int32_t count = N - bx * block_N < block_N ? N - bx * block_N : block_N;

        // for i in T.Parallel(block_N)
        LocalTensor<float> A_tile = A_tile_queue.AllocTensor<float>();
        copy_in_row(A_tile, A_gm[bx * block_N], count);
        A_tile_queue.EnQue(A_tile);
        LocalTensor<float> B_tile = B_tile_queue.AllocTensor<float>();
        copy_in_row(B_tile, B_gm[bx * block_N], count);
        B_tile_queue.EnQue(B_tile);

        // C[bx * block_N + i] = A[bx * block_N + i] + B[bx * block_N + i]
        A_tile = A_tile_queue.DeQue<float>();
        B_tile = B_tile_queue.DeQue<float>();
        LocalTensor<float> C_tile = C_tile_queue.AllocTensor<float>();
        Add(C_tile, A_tile, B_tile, count);
        B_tile_queue.FreeTensor(B_tile);
        A_tile_queue.FreeTensor(A_tile);
        C_tile_queue.EnQue(C_tile);
        C_tile = C_tile_queue.DeQue<float>();
        copy_out_row(C_gm[bx * block_N], C_tile, count);
        C_tile_queue.FreeTensor(C_tile);
    }
}
