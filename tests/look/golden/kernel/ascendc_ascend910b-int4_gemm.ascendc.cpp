// int4_gemm: C = A @ W^T, where W[n, k] = (half k % 2 of B[n, k // 2]) * scales[k // group_size, n]
//   from     int4_gemm.py by tile2c 0.1.0
//   target   ascendc:ascend910b (never run on silicon)
//   again    tile2c int4_gemm.py -o . --target ascendc:ascend910b
//   compile  bisheng -x asc --npu-arch=dav-2201 -O2 -fPIC -shared int4_gemm.ascendc.cpp
//            -o int4_gemm.so
//   launch   20 groups of a cube core and both its vector cores, or fewer: at most
//            (N + 63) / 64 * ((M + 63) / 64) have work
//   sizes    M, N and K are free
//   memory   UB 21632 of 196352, L1 32768 of 524032, L0A 16384 of 65536, L0B 16384 of 65536, L0C
//            32768 of 131072 bytes
//   text     sha256 7180ebdabc8c  (edit freely: `tile2c --merge` keeps your changes)
#include "kernel_operator.h"

using namespace AscendC;

constexpr int32_t block_M = 64;
constexpr int32_t block_N = 64;
constexpr int32_t block_K = 64;
constexpr int32_t group_size = 128;
constexpr int32_t strip_rows = 32;
constexpr uint16_t W_shared_ready = 0;
constexpr uint16_t W_shared_free = 1;

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

// Copies `count` neighbours to a tile. Whole 32-byte blocks arrive: zeros follow the last element.
template <typename T>
static __aicore__ inline void copy_in_row(const LocalTensor<T>& tile, const GlobalTensor<T>& tensor,
                                          int32_t count) {
    constexpr int32_t block = 32 / sizeof(T);
    const int32_t zeros = (block - count % block) % block;
    const DataCopyExtParams shape(1, count * sizeof(T), 0, 0, 0);
    DataCopyPad(tile, tensor, shape, DataCopyPadExtParams<T>(true, 0, zeros, T{}));
}

// Copies `rows` rows of `columns` elements of a tile to global memory and nothing beyond them;
// `pitch` and `tile_pitch` elements lie between the starts of two rows there and here.
template <typename T>
static __aicore__ inline void copy_out(const GlobalTensor<T>& tensor, const LocalTensor<T>& tile,
                                       int32_t rows, int32_t columns, int64_t pitch,
                                       int32_t tile_pitch) {
    constexpr int32_t block = 32 / sizeof(T);
    const int32_t filled = (columns + block - 1) / block * block;
    const DataCopyExtParams shape(rows, columns * sizeof(T), (tile_pitch - filled) / block,
                                  (pitch - columns) * sizeof(T), 0);
    DataCopyPad(tensor, tile, shape);
}

// `turned` gets the `columns` columns of `tile` as its rows, 16 of the `rows` rows at a time;
// `pitch` elements lie between the starts of two rows. TransDataTo5HD takes a block of each of 16
// rows, and goes on with the next block of these rows.
template <typename T>
static __aicore__ inline void transpose(const LocalTensor<T>& turned, const LocalTensor<T>& tile,
                                        int32_t rows, int32_t columns, int32_t turned_pitch,
                                        int32_t pitch) {
    constexpr int32_t lanes = 32 / sizeof(T);  // elements of a block
    constexpr int32_t parts = 16 / lanes;  // blocks that 16 elements take
    const int32_t blocks = (columns + lanes - 1) / lanes;
    const bool several = blocks > 1;  // a single block would lie one stride further
    const TransDataTo5HDParams steps(false, false, blocks, several ? turned_pitch : 0, several);
    for (int32_t first = 0; first < rows; first += 16) {
        uint64_t from[16], to[16];
        for (int32_t i = 0; i < 16; ++i) {
            const int32_t row = first + i < rows ? first + i : rows - 1;
            from[i] = tile[row * pitch].GetPhyAddr();
            to[i] = turned[i / parts * turned_pitch + first + i % parts * lanes].GetPhyAddr();
        }
        TransDataTo5HD<T>(to, from, steps);
    }
}

// The second unit of `event` (FIRST_SECOND) waits for all that the first has been given so far.
template <HardEvent event>
static __aicore__ inline void order() {
    const TEventID id = GetTPipePtr()->AllocEventID<event>();
    SetFlag<event>(id);
    WaitFlag<event>(id);
    GetTPipePtr()->ReleaseEventID<event>(id);
}

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

// Zeros in a tile of L1 of so many 32-byte blocks.
template <typename T>
static __aicore__ inline void clear_tile(const LocalTensor<T>& tile, int32_t blocks) {
    const InitConstValueParams<uint16_t> zeros(1, blocks, 0, 0);
    InitConstValue(tile.template ReinterpretCast<uint16_t>(), zeros);
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

// K x N to L0B from an N x K tile of `tall` rows: fractals and their rows lie as they should.
template <typename T>
static __aicore__ inline void load_right_transposed(const LocalTensor<T>& right,
                                                    const LocalTensor<T>& tile, int32_t n,
                                                    int32_t k, int32_t tall) {
    constexpr int32_t block = 32 / sizeof(T);
    const LoadData2DParams column(0, n / 16, 1, 0, 0, false, 0);
    for (int32_t i = 0; i < k; i += block) {
        LoadData(right[i * n], tile[i * tall], column);
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

extern "C" __global__ __aicore__ void int4_gemm(
    GM_ADDR A,  // half [M, K]
    GM_ADDR B,  // int8_t [N, K / 2]
    GM_ADDR scales,  // half [(K + group_size - 1) / group_size, N]
    GM_ADDR C,  // half [M, N]
    GM_ADDR W_shared_exchange,  // half [20, block_N, block_K], vector to cube cores
    int32_t M, int32_t N, int32_t K) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);  // each cube core with both its vector cores
    GlobalTensor<half> A_gm;
    A_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(A));
    GlobalTensor<int8_t> B_gm;
    B_gm.SetGlobalBuffer(reinterpret_cast<__gm__ int8_t*>(B));
    GlobalTensor<half> scales_gm;
    scales_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(scales));
    GlobalTensor<half> C_gm;
    C_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(C));
    GlobalTensor<half> W_shared_exchange_gm;
    W_shared_exchange_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(W_shared_exchange));

    TPipe pipe;
    if ASCEND_IS_AIC {
        // A_shared: half [block_M, block_K], in L1, filled by MTE2 for MTE1, double buffered
        TQue<TPosition::A1, 1> A_shared_queue;
        pipe.InitBuffer(A_shared_queue, 2, block_M * block_K * sizeof(half));
        // W_shared: half [block_N, block_K], in L1, filled by MTE2 for MTE1, double buffered
        TQue<TPosition::B1, 1> W_shared_queue;
        pipe.InitBuffer(W_shared_queue, 2, block_N * block_K * sizeof(half));
        // left: half, in L0A, filled by MTE1 for M, double buffered
        TQue<TPosition::A2, 1> left_queue;
        pipe.InitBuffer(left_queue, 2, 8192);
        // right: half, in L0B, filled by MTE1 for M, double buffered
        TQue<TPosition::B2, 1> right_queue;
        pipe.InitBuffer(right_queue, 2, 8192);
        // C_local: float [block_M, block_N], in L0C, filled by M for FIX, double buffered
        TQue<TPosition::CO1, 1> C_local_queue;
        pipe.InitBuffer(C_local_queue, 2, block_M * block_N * sizeof(float));
        const int32_t core = GetBlockIdx();
        CrossCoreSetFlag<2, PIPE_MTE2>(W_shared_free);  // W_shared_exchange is free at first

        // with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by)
        // each core takes every GetBlockNum()-th block
        const int32_t grid_x = (N + block_N - 1) / block_N;
        const int32_t grid_y = (M + block_M - 1) / block_M;
        for (int32_t block = core; block < grid_x * grid_y; block += GetBlockNum()) {
            const int32_t bx = block % grid_x;
            const int32_t by = block / grid_x;
            const int32_t rows = M - by * block_M < block_M ? M - by * block_M : block_M;
            const int32_t columns = N - bx * block_N < block_N ? N - bx * block_N : block_N;

            // T.clear(C_local)
            LocalTensor<float> C_local = C_local_queue.AllocTensor<float>();

            // for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages)
            const int32_t rounds =
                (K + block_K - 1) / block_K > 1 ? (K + block_K - 1) / block_K : 1;
            for (int32_t ko = 0; ko < rounds; ++ko) {
                const int32_t depth_left = K - ko * block_K;
                const int32_t depth =
                    depth_left > 0 ? (depth_left < block_K ? depth_left : block_K) : 0;

                // T.copy(A[by * block_M, ko * block_K], A_shared)
                LocalTensor<half> A_shared = A_shared_queue.AllocTensor<half>();
                if (depth < block_K) {
                    clear_tile(A_shared, 256);
                    PipeBarrier<PIPE_MTE2>();  // the zeros are there before the copy
                }
                copy_fractals(A_shared, A_gm[size_t(by * block_M) * K + ko * block_K], rows, depth,
                              K, block_M);
                A_shared_queue.EnQue(A_shared);
                CrossCoreWaitFlag(W_shared_ready);  // W_shared is in the workspace
                LocalTensor<half> W_shared = W_shared_queue.AllocTensor<half>();
                copy_fractals(W_shared, W_shared_exchange_gm[size_t(core) * block_N * block_K],
                              block_N, block_K, block_K, block_N);
                W_shared_queue.EnQue(W_shared);
                CrossCoreSetFlag<2, PIPE_MTE2>(W_shared_free);  // W_shared has been read

                // T.gemm(A_shared, W_shared, C_local, transpose_B=True)
                const int32_t m = whole(rows, 16);
                LocalTensor<half> left = left_queue.AllocTensor<half>();
                A_shared = A_shared_queue.DeQue<half>();
                load_left(left, A_shared, m, block_K, block_M);
                A_shared_queue.FreeTensor(A_shared);
                left_queue.EnQue(left);
                LocalTensor<half> right = right_queue.AllocTensor<half>();
                W_shared = W_shared_queue.DeQue<half>();
                load_right_transposed(right, W_shared, block_N, block_K, block_N);
                W_shared_queue.FreeTensor(W_shared);
                right_queue.EnQue(right);
                left = left_queue.DeQue<half>();
                right = right_queue.DeQue<half>();
                multiply(C_local, left, right, m, block_N, block_K, ko == 0);
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
    if ASCEND_IS_AIV {
        // B_shared: int8_t [strip_rows, 32], filled by MTE2 for V, double buffered
        TQue<TPosition::VECIN, 1> B_shared_queue;
        pipe.InitBuffer(B_shared_queue, 2, strip_rows * 32 * sizeof(int8_t));
        // scales_shared: half [strip_rows], filled by MTE2 for V, double buffered
        TQue<TPosition::VECIN, 1> scales_shared_queue;
        pipe.InitBuffer(scales_shared_queue, 2, strip_rows * sizeof(half));
        // W_shared: half [strip_rows, block_K], filled by V for MTE3, double buffered
        TQue<TPosition::VECOUT, 1> W_shared_queue;
        pipe.InitBuffer(W_shared_queue, 2, strip_rows * block_K * sizeof(half));
        TBuf<TPosition::VECCALC> W_shared_parts_buffer;  // half [2, strip_rows, 32]
        pipe.InitBuffer(W_shared_parts_buffer, 2 * strip_rows * 32 * sizeof(half));
        LocalTensor<half> W_shared_parts = W_shared_parts_buffer.Get<half>();
        TBuf<TPosition::VECCALC> work_int16_buffer;  // intermediate results
        pipe.InitBuffer(work_int16_buffer, 2048);
        LocalTensor<int16_t> work_int16 = work_int16_buffer.Get<int16_t>();
        TBuf<TPosition::VECCALC> blocks_half_buffer;  // a value for each row, spread over a block
        pipe.InitBuffer(blocks_half_buffer, 1024);
        LocalTensor<half> blocks_half = blocks_half_buffer.Get<half>();
        TBuf<TPosition::VECCALC> work_half_buffer;  // intermediate results
        pipe.InitBuffer(work_half_buffer, 4096);
        LocalTensor<half> work_half = work_half_buffer.Get<half>();
        const int32_t core = GetBlockIdx() / 2;
        const int32_t strip = GetSubBlockIdx();  // this vector core's part of the rows, 32 of 64

        // with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by)
        // each core takes every GetBlockNum()-th block
        // braces hold strides in 32-byte blocks, the result's and each operand's: those between the
        // blocks of a repeat, then those between repeats
        const int32_t grid_x = (N + block_N - 1) / block_N;
        const int32_t grid_y = (M + block_M - 1) / block_M;
        for (int32_t block = core; block < grid_x * grid_y; block += GetBlockNum()) {
            const int32_t bx = block % grid_x;
            const int32_t rows_left = N - (bx * block_N + strip * strip_rows);
            const int32_t rows =
                rows_left > 0 ? (rows_left < strip_rows ? rows_left : strip_rows) : 0;

            // for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages)
            const int32_t rounds =
                (K + block_K - 1) / block_K > 1 ? (K + block_K - 1) / block_K : 1;
            for (int32_t ko = 0; ko < rounds; ++ko) {
                const int32_t columns_left = K / 2 - ko * (block_K / 2);
                const int32_t columns =
                    columns_left > 0 ? (columns_left < 32 ? columns_left : 32) : 0;

                // T.copy(B[bx * block_N, ko * (block_K // 2)], B_shared)
                const int64_t B_shared_at =
                    size_t(bx * block_N + strip * strip_rows) * (K / 2) + ko * (block_K / 2);
                LocalTensor<int8_t> B_shared = B_shared_queue.AllocTensor<int8_t>();
                if (rows < strip_rows || columns < 32) {
                    // what lies outside the tensor is 0
                    Duplicate(B_shared.ReinterpretCast<int16_t>(), int16_t(0), 512);
                    order<HardEvent::V_MTE2>();  // the zeros are there before the copy
                }
                if (rows > 0 && columns > 0) {
                    copy_in(B_shared, B_gm[B_shared_at], rows, columns, K / 2, 32);
                }
                B_shared_queue.EnQue(B_shared);

                // T.copy(scales[ko * block_K // group_size, bx * block_N], scales_shared)
                const int64_t scales_shared_at =
                    size_t(ko * block_K / group_size) * N + bx * block_N + strip * strip_rows;
                LocalTensor<half> scales_shared = scales_shared_queue.AllocTensor<half>();
                if (rows < strip_rows ||
                    !(ko * block_K / group_size < (K + group_size - 1) / group_size)) {
                    // what lies outside the tensor is 0
                    Duplicate(scales_shared, half(0.f), strip_rows);
                    order<HardEvent::V_MTE2>();  // the zeros are there before the copy
                }
                if (ko * block_K / group_size < (K + group_size - 1) / group_size && rows > 0) {
                    copy_in_row(scales_shared, scales_gm[scales_shared_at], rows);
                }
                scales_shared_queue.EnQue(scales_shared);

                // element 0 of each 2
                // for i, j in T.Parallel(block_N, block_K)
                // both = B_shared[i, j // 2]
                // W_shared[i, j] = T.cast(weight, dtype) * scales_shared[i]
                B_shared = B_shared_queue.DeQue<int8_t>();
                Cast(W_shared_parts, B_shared, RoundMode::CAST_NONE, strip_rows * 32);
                PipeBarrier<PIPE_V>();  // W_shared_parts is complete
                Cast(work_int16, W_shared_parts, RoundMode::CAST_TRUNC, strip_rows * 32);
                PipeBarrier<PIPE_V>();  // work_int16 is complete
                ShiftLeft(work_int16, work_int16, int16_t(12), strip_rows * 32);
                PipeBarrier<PIPE_V>();  // work_int16 is complete
                ShiftRight(work_int16, work_int16, int16_t(8), strip_rows * 32);
                PipeBarrier<PIPE_V>();  // work_int16 is complete
                ShiftRight(work_int16, work_int16, int16_t(4), strip_rows * 32);
                PipeBarrier<PIPE_V>();  // work_int16 is complete
                Cast(W_shared_parts, work_int16, RoundMode::CAST_RINT, strip_rows * 32);
                scales_shared = scales_shared_queue.DeQue<half>();
                // each element of scales_shared fills a block
                Brcb(blocks_half, scales_shared, 4, {1, 8});
                PipeBarrier<PIPE_V>();  // W_shared_parts and blocks_half are complete
                Mul(W_shared_parts, W_shared_parts, blocks_half, 32, strip_rows,
                    {1, 1, 0, 2, 2, 1});

                // element 1 of each 2
                // both = B_shared[i, j // 2]
                // W_shared[i, j] = T.cast(weight, dtype) * scales_shared[i]
                Cast(W_shared_parts[1024], B_shared, RoundMode::CAST_NONE, strip_rows * 32);
                B_shared_queue.FreeTensor(B_shared);
                PipeBarrier<PIPE_V>();  // W_shared_parts is complete
                Cast(work_int16, W_shared_parts[1024], RoundMode::CAST_TRUNC, strip_rows * 32);
                PipeBarrier<PIPE_V>();  // work_int16 is complete
                ShiftRight(work_int16, work_int16, int16_t(4), strip_rows * 32);
                PipeBarrier<PIPE_V>();  // work_int16 is complete
                Cast(W_shared_parts[1024], work_int16, RoundMode::CAST_RINT, strip_rows * 32);
                // each element of scales_shared fills a block
                Brcb(blocks_half, scales_shared, 4, {1, 8});
                scales_shared_queue.FreeTensor(scales_shared);
                PipeBarrier<PIPE_V>();  // W_shared_parts and blocks_half are complete
                Mul(W_shared_parts[1024], W_shared_parts[1024], blocks_half, 32, strip_rows,
                    {1, 1, 0, 2, 2, 1});
                PipeBarrier<PIPE_V>();  // W_shared_parts is complete
                for (int32_t part = 0; part < 2; ++part) {  // columns become rows, 2 apart
                    transpose(work_half[part * 32], W_shared_parts[part * 1024], 32, 32, 64, 32);
                }
                LocalTensor<half> W_shared = W_shared_queue.AllocTensor<half>();
                PipeBarrier<PIPE_V>();  // work_half is complete
                transpose(W_shared, work_half, 64, 32, 64, 32);
                CrossCoreWaitFlag(W_shared_free);  // W_shared has been read
                W_shared_queue.EnQue(W_shared);
                W_shared = W_shared_queue.DeQue<half>();
                copy_out(
                    W_shared_exchange_gm[(size_t(core) * block_N + strip * strip_rows) * block_K],
                    W_shared, strip_rows, block_K, block_K, block_K);
                W_shared_queue.FreeTensor(W_shared);
                CrossCoreSetFlag<2, PIPE_MTE3>(W_shared_ready);  // W_shared is in the workspace
            }
        }

        CrossCoreWaitFlag(W_shared_free);  // no flag stays set
    }
}
