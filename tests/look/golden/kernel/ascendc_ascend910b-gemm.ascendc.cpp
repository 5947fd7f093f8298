// gemm: C = A @ B
//   from     gemm.py by tile2c 0.1.0
//   target   ascendc:ascend910b (never run on silicon)
//   again    tile2c gemm.py -o . --target ascendc:ascend910b
//   compile  bisheng -x asc --npu-arch=dav-2201 -O2 -fPIC -shared gemm.ascendc.cpp -o gemm.so
//   launch   20 cube cores, or fewer: at most (N + 127) / 128 * ((M + 127) / 128) have work
//   sizes    M, N and K are free
//   memory   L1 32768 of 524032, L0A 16384 of 65536, L0B 16384 of 65536, L0C 131072 of 131072 bytes
//   text     sha256 3604fe5adfc9  (edit freely: `tile2c --merge` keeps your changes)
#include "kernel_operator.h"

using namespace AscendC;

constexpr int32_t block_M = 128;
constexpr int32_t block_N = 128;
constexpr int32_t block_K = 32;

// `count` rounded up to a multiple of `unit`, at least one.
static __aicore__ inline int32_t whole(int32_t count, int32_t unit) {
    return count > unit ? (count + unit - 1) / unit * unit : unit;
}

// Copies `rows` rows of `columns` elements, `pitch` apart, to a tile in L1, where column after
// column of 32-byte blocks is `tall` rows high. Zeros fill what is missing of whole fractals, of
// which there is at least one: `unit` rows, a block wide.
template <int32_t unit = 16, typename T>
static __aicore__ inline void copy_fractals(const LocalTensor<T>& tile,
                                            const GlobalTensor<T>& tensor, int32_t rows,
                                            int32_t columns, int64_t pitch, int32_t tall) {
    constexpr int32_t block = 32 / sizeof(T);
    const int32_t filled = columns > 0 ? rows : 0;
    if (filled > 0 && pitch <= 65535) {
        DataCopy(tile, tensor, Nd2NzParams(1, rows, columns, 0, pitch, tall, 1, 0));
    }
    if (pitch > 65535) {  // more than the copy's field holds: row by row
        for (int32_t row = 0; row < filled; ++row) {
            const Nd2NzParams shape(1, 1, columns, 0, columns, tall, 1, 0);
            DataCopy(tile[row * block], tensor[row * pitch], shape);
        }
    }
    const int32_t missing = whole(rows, unit) - filled;
    if (missing > 0) {
        const int32_t blocks = whole(columns, block) / block;
        const auto rest = tile[filled * block].template ReinterpretCast<uint16_t>();
        InitConstValue(rest, InitConstValueParams<uint16_t>(blocks, missing, tall - missing, 0));
    }
}

// M x K of a tile of `tall` rows to L0A: from column after column of fractals to row after row.
template <typename T>
static __aicore__ inline void load_left(const LocalTensor<T>& left, const LocalTensor<T>& tile,
                                        int32_t m, int32_t k, int32_t tall) {
    constexpr int32_t block = 32 / sizeof(T);
    const LoadData2DParams row(0, k / block, tall / 16, 0, 0, false, 0);
    for (int32_t i = 0; i < m; i += 16) {
        LoadData(left[i * k], tile[i * block], row);
    }
}

// K x N of a tile of `tall` rows to L0B, which holds rows of N: each fractal is turned.
template <typename T>
static __aicore__ inline void load_right(const LocalTensor<T>& right, const LocalTensor<T>& tile,
                                         int32_t n, int32_t k, int32_t tall) {
    const LoadData2DParams row(0, n / 16, tall / 16, 0, 0, true, 0);
    for (int32_t i = 0; i < k; i += 16) {
        LoadData(right[i * n], tile[i * 16], row);
    }
}

// sums (m x n) = left * right, or += where this is not the `first` product.
template <typename C, typename T>
static __aicore__ inline void multiply(const LocalTensor<C>& sums, const LocalTensor<T>& left,
                                       const LocalTensor<T>& right, int32_t m, int32_t n, int32_t k,
                                       bool first) {
    Mmad(sums, left, right, MmadParams(m, n, k, 0, false, first));
    if ((m / 16) * (n / 16) < 10) {
        PipeBarrier<PIPE_M>();  // the next product would start before so small a one ends
    }
}

// Stores `rows` rows of `columns` sums of a tile of `tall` rows, `pitch` elements apart there and
// nothing beyond them, converted by `mode`; what is below 0 becomes 0 with `relu`.
template <typename T, typename C>
static __aicore__ inline void store_sums(const GlobalTensor<T>& tensor, const LocalTensor<C>& sums,
                                         int32_t rows, int32_t columns, int32_t tall, int64_t pitch,
                                         QuantMode_t mode, bool relu = false) {
    FixpipeParamsV220 shape(columns, rows, tall, pitch, relu);
    shape.quantPre = mode;
    Fixpipe(tensor, sums, shape);
}

extern "C" __global__ __aicore__ void gemm(GM_ADDR A,  // half [M, K]
                                           GM_ADDR B,  // half [K, N]
                                           GM_ADDR C,  // half [M, N]
                                           int32_t M, int32_t N, int32_t K) {
    // cube cores: nothing here needs the vector unit
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GlobalTensor<half> A_gm;
    A_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(A));
    GlobalTensor<half> B_gm;
    B_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(B));
    GlobalTensor<half> C_gm;
    C_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(C));

    TPipe pipe;
    // A_shared: half [block_M, block_K], in L1, filled by MTE2 for MTE1, double buffered
    TQue<TPosition::A1, 1> A_shared_queue;
    pipe.InitBuffer(A_shared_queue, 2, block_M * block_K * sizeof(half));
    // B_shared: half [block_K, block_N], in L1, filled by MTE2 for MTE1, double buffered
    TQue<TPosition::B1, 1> B_shared_queue;
    pipe.InitBuffer(B_shared_queue, 2, block_K * block_N * sizeof(half));
    // left: half, in L0A, filled by MTE1 for M, double buffered
    TQue<TPosition::A2, 1> left_queue;
    pipe.InitBuffer(left_queue, 2, 8192);
    // right: half, in L0B, filled by MTE1 for M, double buffered
    TQue<TPosition::B2, 1> right_queue;
    pipe.InitBuffer(right_queue, 2, 8192);
    // C_local: float [block_M, block_N], in L0C, filled by M for FIX, double buffered
    TQue<TPosition::CO1, 1> C_local_queue;
    pipe.InitBuffer(C_local_queue, 2, block_M * block_N * sizeof(float));

    // with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by)
    // each core takes every GetBlockNum()-th block
    const int32_t grid_x = (N + block_N - 1) / block_N;
    const int32_t grid_y = (M + block_M - 1) / block_M;
    for (int32_t block = GetBlockIdx(); block < grid_x * grid_y; block += GetBlockNum()) {
        const int32_t bx = block % grid_x;
        const int32_t by = block / grid_x;
        const int32_t rows = M - by * block_M < block_M ? M - by * block_M : block_M;
        const int32_t columns = N - bx * block_N < block_N ? N - bx * block_N : block_N;

        // T.clear(C_local)
        LocalTensor<float> C_local = C_local_queue.AllocTensor<float>();

        // for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages)
        const int32_t rounds = (K + block_K - 1) / block_K > 1 ? (K + block_K - 1) / block_K : 1;
        for (int32_t ko = 0; ko < rounds; ++ko) {
            const int32_t depth_left = K - ko * block_K;
            const int32_t depth =
                depth_left > 0 ? (depth_left < block_K ? depth_left : block_K) : 0;

            // T.copy(A[by * block_M, ko * block_K], A_shared)
            LocalTensor<half> A_shared = A_shared_queue.AllocTensor<half>();
            copy_fractals(A_shared, A_gm[size_t(by * block_M) * K + ko * block_K], rows, depth, K,
                          block_M);
            A_shared_queue.EnQue(A_shared);

            // T.copy(B[ko * block_K, bx * block_N], B_shared)
            LocalTensor<half> B_shared = B_shared_queue.AllocTensor<half>();
            copy_fractals(B_shared, B_gm[size_t(ko * block_K) * N + bx * block_N], depth, columns,
                          N, block_K);
            B_shared_queue.EnQue(B_shared);

            // T.gemm(A_shared, B_shared, C_local)
            const int32_t m = whole(rows, 16);
            const int32_t n = whole(columns, 16);
            const int32_t k = whole(depth, 16);
            LocalTensor<half> left = left_queue.AllocTensor<half>();
            A_shared = A_shared_queue.DeQue<half>();
            load_left(left, A_shared, m, k, block_M);
            A_shared_queue.FreeTensor(A_shared);
            left_queue.EnQue(left);
            LocalTensor<half> right = right_queue.AllocTensor<half>();
            B_shared = B_shared_queue.DeQue<half>();
            load_right(right, B_shared, n, k, block_K);
            B_shared_queue.FreeTensor(B_shared);
            right_queue.EnQue(right);
            left = left_queue.DeQue<half>();
            right = right_queue.DeQue<half>();
            multiply(C_local, left, right, m, n, k, ko == 0);
            left_queue.FreeTensor(left);
            right_queue.FreeTensor(right);
        }
        C_local_queue.EnQue(C_local);

        // T.copy(C_local, C[by * block_M, bx * block_N])
        const int32_t m = whole(rows, 16);
        C_local = C_local_queue.DeQue<float>();
        store_sums(C_gm[size_t(by * block_M) * N + bx * block_N], C_local, rows, columns, m, N,
                   QuantMode_t::F322F16);
        C_local_queue.FreeTensor(C_local);
    }
}
