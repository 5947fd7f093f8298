// row_sum: Y[i] = sum of X[i, :].
//   from     row_sum.py by tile2c 0.1.0
//   target   ascendc:ascend910b (never run on silicon)
//   again    tile2c row_sum.py -o . --target ascendc:ascend910b
//   compile  bisheng -x asc --npu-arch=dav-2201 -O2 -fPIC -shared row_sum.ascendc.cpp -o row_sum.so
//   launch   40 cores, or fewer: at most (M + 7) / 8 have work
//   sizes    M and N are free
//   memory   32928 of 196352 bytes of a core's UB
//   text     sha256 d694997f56af  (edit freely: `tile2c --merge` keeps your changes)
#include "kernel_operator.h"

using namespace AscendC;

constexpr int32_t block_M = 8;
constexpr int32_t block_N = 512;

// Copies `rows` rows of `columns` elements to a tile; `pitch` and `tile_pitch` elements lie between
// the starts of two rows there and here. Whole 32-byte blocks arrive: zeros follow a row's end.
template <typename T>
static __aicore__ inline void copy_in(const LocalTensor<T>& tile, const GlobalTensor<T>& tensor,
                                      int32_t rows, int32_t columns, int64_t pitch,
                                      int32_t tile_pitch) {
    constexpr int32_t block = 32 / sizeof(T);
    const int32_t gap = tile_pitch - columns;
    const int32_t zeros = gap < block ? gap : block;
    const int32_t filled = (columns + zeros + block - 1) / block * block;
    const DataCopyExtParams shape(rows, columns * sizeof(T), (pitch - columns) * sizeof(T),
                                  (tile_pitch - filled) / block, 0);
    DataCopyPad(tile, tensor, shape, DataCopyPadExtParams<T>(true, 0, zeros, T{}));
}

// Copies `count` neighbours of a tile to global memory and nothing beyond them.
template <typename T>
static __aicore__ inline void copy_out_row(const GlobalTensor<T>& tensor,
                                           const LocalTensor<T>& tile, int32_t count) {
    DataCopyPad(tensor, tile, DataCopyExtParams(1, count * sizeof(T), 0, 0, 0));
}

// The second unit of `event` (FIRST_SECOND) waits for all that the first has been given so far.
template <HardEvent event>
static __aicore__ inline void order() {
    const TEventID id = GetTPipePtr()->AllocEventID<event>();
    SetFlag<event>(id);
    WaitFlag<event>(id);
    GetTPipePtr()->ReleaseEventID<event>(id);
}

extern "C" __global__ __aicore__ void row_sum(GM_ADDR X,  // float [M, N]
                                              GM_ADDR Y,  // float [M]
                                              int32_t M, int32_t N) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);  // vector cores: nothing here needs the cube
    GlobalTensor<float> X_gm;
    X_gm.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(X));
    GlobalTensor<float> Y_gm;
    Y_gm.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(Y));

    TPipe pipe;
    // tile: float [block_M, block_N], filled by MTE2 for V, double buffered
    TQue<TPosition::VECIN, 1> tile_queue;
    pipe.InitBuffer(tile_queue, 2, block_M * block_N * sizeof(float));
    // sums: float [block_M], filled by V for MTE3, double buffered
    TQue<TPosition::VECOUT, 1> sums_queue;
    pipe.InitBuffer(sums_queue, 2, block_M * sizeof(float));
    TBuf<TPosition::VECCALC> column_work_buffer;  // intermediate results, one for each row
    pipe.InitBuffer(column_work_buffer, 32);
    LocalTensor<float> column_work = column_work_buffer.Get<float>();
    TBuf<TPosition::VECCALC> row_work_buffer;  // intermediate results, one for each column
    pipe.InitBuffer(row_work_buffer, 64);
    LocalTensor<float> row_work = row_work_buffer.Get<float>();

    // with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx
    // each core takes every GetBlockNum()-th block
    for (int32_t bx = GetBlockIdx(); bx < (M + block_M - 1) / block_M; bx += GetBlockNum()) {
        const int32_t rows = M - bx * block_M < block_M ? M - bx * block_M : block_M;

        // T.clear(sums)
        LocalTensor<float> sums = sums_queue.AllocTensor<float>();
        Duplicate(sums, 0.f, rows);

        // for ko in T.serial(T.ceildiv(N, block_N))
        for (int32_t ko = 0; ko < (N + block_N - 1) / block_N; ++ko) {
            const int32_t columns = N - ko * block_N < block_N ? N - ko * block_N : block_N;

            // Columns past N arrive as zeros and do not change the sums.
            // T.copy(X[bx * block_M, ko * block_N], tile)
            LocalTensor<float> tile = tile_queue.AllocTensor<float>();
            if (columns < block_N) {
                Duplicate(tile, 0.f, block_M * block_N);  // what lies outside the tensor is 0
                order<HardEvent::V_MTE2>();  // the zeros are there before the copy
            }
            copy_in(tile, X_gm[size_t(bx * block_M) * N + ko * block_N], rows, columns, N, block_N);
            tile_queue.EnQue(tile);

            // T.reduce_sum(tile, sums, dim=1, clear=False)
            tile = tile_queue.DeQue<float>();
            PipeBarrier<PIPE_V>();  // column_work has been read
            for (int32_t row = 0; row < rows; ++row) {
                // row_work stays untouched here
                ReduceSum(column_work[row], tile[row * block_N], row_work, block_N);
            }
            tile_queue.FreeTensor(tile);
            PipeBarrier<PIPE_V>();  // column_work is complete
            Add(sums, sums, column_work, rows);
        }

        // T.copy(sums, Y[bx * block_M])
        sums_queue.EnQue(sums);
        sums = sums_queue.DeQue<float>();
        copy_out_row(Y_gm[bx * block_M], sums, rows);
        sums_queue.FreeTensor(sums);
    }
}
