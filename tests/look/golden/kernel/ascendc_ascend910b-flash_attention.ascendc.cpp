// flash_attention: O = softmax(Q @ K^T / sqrt(dim)) @ V for each head of each batch.
//   from     flash_attention.py by tile2c 0.1.0
//   target   ascendc:ascend910b (never run on silicon)
//   again    tile2c flash_attention.py -o . --target ascendc:ascend910b
//   compile  bisheng -x asc --npu-arch=dav-2201 -O2 -fPIC -shared flash_attention.ascendc.cpp
//            -o flash_attention.so
//   launch   20 groups of a cube core and both its vector cores, or fewer: at most
//            (seq_q + 127) / 128 * heads * batch have work
//   sizes    batch, heads, seq_q and seq_kv are free
//   memory   UB 167680 of 196352, L1 73728 of 524032, L0A 65536 of 65536, L0B 16384 of 65536, L0C
//            98304 of 131072 bytes
//   NaN      no document says what Max, Min and their reductions make of it
//   text     sha256 fcb7990bb0b3  (edit freely: `tile2c --merge` keeps your changes)
#include "kernel_operator.h"

using namespace AscendC;

constexpr int32_t dim = 128;
constexpr int32_t block_M = 128;
constexpr int32_t block_N = 32;
constexpr float scale = 0.12751743074602467f;
constexpr int32_t strip_rows = 64;
constexpr uint16_t S_ready = 0;
constexpr uint16_t S_free = 1;
constexpr uint16_t P_ready = 2;
constexpr uint16_t P_free = 3;
constexpr uint16_t acc_ready = 4;
constexpr uint16_t acc_free = 5;

constexpr float infinity = __builtin_huge_valf();

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

// K x N of a tile of `tall` rows to L0B, which holds rows of N: each fractal is turned.
template <typename T>
static __aicore__ inline void load_right(const LocalTensor<T>& right, const LocalTensor<T>& tile,
                                         int32_t n, int32_t k, int32_t tall) {
    const LoadData2DParams row(0, n / 16, tall / 16, 0, 0, true, 0);
    for (int32_t i = 0; i < k; i += 16) {
        LoadData(right[i * n], tile[i * 16], row);
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

extern "C" __global__ __aicore__ void flash_attention(
    GM_ADDR Q,  // half [batch, heads, seq_q, dim]
    GM_ADDR K,  // half [batch, heads, seq_kv, dim]
    GM_ADDR V,  // half [batch, heads, seq_kv, dim]
    GM_ADDR O,  // half [batch, heads, seq_q, dim]
    GM_ADDR S_exchange,  // float [20, block_M, block_N], cube to vector cores
    GM_ADDR P_exchange,  // half [20, block_M, block_N], vector to cube cores
    GM_ADDR acc_exchange,  // float [20, block_M, dim], cube to vector cores
    int32_t batch, int32_t heads, int32_t seq_q, int32_t seq_kv) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);  // each cube core with both its vector cores
    GlobalTensor<half> Q_gm;
    Q_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(Q));
    GlobalTensor<half> K_gm;
    K_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(K));
    GlobalTensor<half> V_gm;
    V_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(V));
    GlobalTensor<half> O_gm;
    O_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(O));
    GlobalTensor<float> S_exchange_gm;
    S_exchange_gm.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(S_exchange));
    GlobalTensor<half> P_exchange_gm;
    P_exchange_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(P_exchange));
    GlobalTensor<float> acc_exchange_gm;
    acc_exchange_gm.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(acc_exchange));

    TPipe pipe;
    if ASCEND_IS_AIC {
        // Q_shared: half [block_M, dim], in L1, filled by MTE2 for MTE1
        TQue<TPosition::A1, 1> Q_shared_queue;
        pipe.InitBuffer(Q_shared_queue, 1, block_M * dim * sizeof(half));
        // P: half [block_M, block_N], in L1, filled by MTE2 for MTE1
        TQue<TPosition::A1, 1> P_queue;
        pipe.InitBuffer(P_queue, 1, block_M * block_N * sizeof(half));
        // K_shared: half [block_N, dim], in L1, filled by MTE2 for MTE1, double buffered
        TQue<TPosition::B1, 1> K_shared_queue;
        pipe.InitBuffer(K_shared_queue, 2, block_N * dim * sizeof(half));
        // V_shared: half [block_N, dim], in L1, filled by MTE2 for MTE1, double buffered
        TQue<TPosition::B1, 1> V_shared_queue;
        pipe.InitBuffer(V_shared_queue, 2, block_N * dim * sizeof(half));
        // left: half, in L0A, filled by MTE1 for M, double buffered
        TQue<TPosition::A2, 1> left_queue;
        pipe.InitBuffer(left_queue, 2, 32768);
        // right: half, in L0B, filled by MTE1 for M, double buffered
        TQue<TPosition::B2, 1> right_queue;
        pipe.InitBuffer(right_queue, 2, 8192);
        // S: float [block_M, block_N], in L0C, filled by M for FIX, double buffered
        TQue<TPosition::CO1, 1> S_queue;
        pipe.InitBuffer(S_queue, 2, block_M * block_N * sizeof(float));
        // acc: float [block_M, dim], in L0C, filled by M for FIX
        TQue<TPosition::CO1, 1> acc_queue;
        pipe.InitBuffer(acc_queue, 1, block_M * dim * sizeof(float));
        const int32_t core = GetBlockIdx();
        CrossCoreSetFlag<2, PIPE_MTE2>(P_free);  // P_exchange is free at first

        // with T.Kernel(T.ceildiv(seq_q, block_M), heads, batch, threads=threads) as (bx, by, bz)
        // each core takes every GetBlockNum()-th block
        const int32_t grid_x = (seq_q + block_M - 1) / block_M;
        const int32_t grid_y = heads;
        const int32_t grid_z = batch;
        for (int32_t block = core; block < grid_x * grid_y * grid_z; block += GetBlockNum()) {
            const int32_t bx = block % grid_x;
            const int32_t by = block / grid_x % grid_y;
            const int32_t bz = block / grid_x / grid_y;
            const int32_t rows = seq_q - bx * block_M < block_M ? seq_q - bx * block_M : block_M;

            // T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            LocalTensor<half> Q_shared = Q_shared_queue.AllocTensor<half>();
            if (rows < block_M) {
                clear_tile(Q_shared, 1024);
                PipeBarrier<PIPE_MTE2>();  // the zeros are there before the copy
            }
            const int64_t Q_shared_at = ((size_t(bz) * heads + by) * seq_q + bx * block_M) * dim;
            copy_fractals(Q_shared, Q_gm[Q_shared_at], rows, dim, dim, block_M);
            Q_shared_queue.EnQue(Q_shared);

            // Tiles of keys that no query of this block sees are not even loaded.
            const int32_t past = seq_kv - seq_q;
            const int32_t first = bx * block_M + past;

            // keys = T.min(seq_kv, first + block_M) if causal else seq_kv
            const int32_t keys = seq_kv < first + block_M ? seq_kv : first + block_M;

            // for ko in T.Pipelined(T.ceildiv(keys, block_N), num_stages=num_stages)
            Q_shared = Q_shared_queue.DeQue<half>();
            for (int32_t ko = 0; ko < (keys + block_N - 1) / block_N; ++ko) {
                const int32_t columns_left = seq_kv - ko * block_N;
                const int32_t columns =
                    columns_left > 0 ? (columns_left < block_N ? columns_left : block_N) : 0;

                // T.copy(K[bz, by, ko * block_N : (ko + 1) * block_N, :], K_shared)
                LocalTensor<half> K_shared = K_shared_queue.AllocTensor<half>();
                if (columns < block_N) {
                    clear_tile(K_shared, 256);
                    PipeBarrier<PIPE_MTE2>();  // the zeros are there before the copy
                }
                const int64_t K_shared_at =
                    ((size_t(bz) * heads + by) * seq_kv + ko * block_N) * dim;
                copy_fractals(K_shared, K_gm[K_shared_at], columns, dim, dim, block_N);
                K_shared_queue.EnQue(K_shared);

                // T.copy(V[bz, by, ko * block_N : (ko + 1) * block_N, :], V_shared)
                LocalTensor<half> V_shared = V_shared_queue.AllocTensor<half>();
                if (columns < block_N) {
                    clear_tile(V_shared, 256);
                    PipeBarrier<PIPE_MTE2>();  // the zeros are there before the copy
                }
                const int64_t V_shared_at =
                    ((size_t(bz) * heads + by) * seq_kv + ko * block_N) * dim;
                copy_fractals(V_shared, V_gm[V_shared_at], columns, dim, dim, block_N);
                V_shared_queue.EnQue(V_shared);

                // S = Q @ K^T, and minus infinity where a query does not see a key.
                // T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True,
                // policy=T.GemmWarpPolicy.FullRow)
                LocalTensor<half> left = left_queue.AllocTensor<half>();
                load_left(left, Q_shared, block_M, dim, block_M);
                left_queue.EnQue(left);
                LocalTensor<half> right = right_queue.AllocTensor<half>();
                K_shared = K_shared_queue.DeQue<half>();
                load_right_transposed(right, K_shared, block_N, dim, block_N);
                K_shared_queue.FreeTensor(K_shared);
                right_queue.EnQue(right);
                left = left_queue.DeQue<half>();
                right = right_queue.DeQue<half>();
                LocalTensor<float> S = S_queue.AllocTensor<float>();
                multiply(S, left, right, block_M, block_N, dim, true);
                S_queue.EnQue(S);
                left_queue.FreeTensor(left);
                right_queue.FreeTensor(right);
                CrossCoreWaitFlag(S_free);  // S has been read
                S = S_queue.DeQue<float>();
                store_sums(S_exchange_gm[size_t(core) * block_M * block_N], S, block_M, block_N,
                           block_M, block_N, QuantMode_t::NoQuant);
                S_queue.FreeTensor(S);
                CrossCoreSetFlag<2, PIPE_FIX>(S_ready);  // S is in the workspace
                CrossCoreWaitFlag(P_ready);  // P is in the workspace
                LocalTensor<half> P = P_queue.AllocTensor<half>();
                copy_fractals(P, P_exchange_gm[size_t(core) * block_M * block_N], block_M, block_N,
                              block_N, block_M);
                P_queue.EnQue(P);
                CrossCoreSetFlag<2, PIPE_MTE2>(P_free);  // P has been read

                // T.gemm(P, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)
                left = left_queue.AllocTensor<half>();
                P = P_queue.DeQue<half>();
                load_left(left, P, block_M, block_N, block_M);
                P_queue.FreeTensor(P);
                left_queue.EnQue(left);
                right = right_queue.AllocTensor<half>();
                V_shared = V_shared_queue.DeQue<half>();
                load_right(right, V_shared, dim, block_N, block_N);
                V_shared_queue.FreeTensor(V_shared);
                right_queue.EnQue(right);
                left = left_queue.DeQue<half>();
                right = right_queue.DeQue<half>();
                LocalTensor<float> acc = acc_queue.AllocTensor<float>();
                multiply(acc, left, right, block_M, dim, block_N, true);
                acc_queue.EnQue(acc);
                left_queue.FreeTensor(left);
                right_queue.FreeTensor(right);
                CrossCoreWaitFlag(acc_free);  // acc has been read
                acc = acc_queue.DeQue<float>();
                store_sums(acc_exchange_gm[size_t(core) * block_M * dim], acc, block_M, dim,
                           block_M, dim, QuantMode_t::NoQuant);
                acc_queue.FreeTensor(acc);
                CrossCoreSetFlag<2, PIPE_FIX>(acc_ready);  // acc is in the workspace
            }
            Q_shared_queue.FreeTensor(Q_shared);
        }

        CrossCoreWaitFlag(S_free);  // no flag stays set
        CrossCoreWaitFlag(acc_free);  // no flag stays set
    }
    if ASCEND_IS_AIV {
        // P: half [strip_rows, block_N], filled by V for MTE3, double buffered
        TQue<TPosition::VECOUT, 1> P_queue;
        pipe.InitBuffer(P_queue, 2, strip_rows * block_N * sizeof(half));
        // acc_product: float [strip_rows, dim], filled by MTE2 for V, double buffered
        TQue<TPosition::VECIN, 1> acc_product_queue;
        pipe.InitBuffer(acc_product_queue, 2, strip_rows * dim * sizeof(float));
        // acc_half: half [strip_rows, dim], filled by V for MTE3, double buffered
        TQue<TPosition::VECOUT, 1> acc_half_queue;
        pipe.InitBuffer(acc_half_queue, 2, strip_rows * dim * sizeof(half));
        TBuf<TPosition::VECIN> S_buffer;  // float [strip_rows, block_N]
        pipe.InitBuffer(S_buffer, strip_rows * block_N * sizeof(float));
        LocalTensor<float> S = S_buffer.Get<float>();
        TBuf<TPosition::VECCALC> acc_buffer;  // float [strip_rows, dim]
        pipe.InitBuffer(acc_buffer, strip_rows * dim * sizeof(float));
        LocalTensor<float> acc = acc_buffer.Get<float>();
        TBuf<TPosition::VECCALC> row_max_buffer;  // float [strip_rows]
        pipe.InitBuffer(row_max_buffer, strip_rows * sizeof(float));
        LocalTensor<float> row_max = row_max_buffer.Get<float>();
        TBuf<TPosition::VECCALC> max_before_buffer;  // float [strip_rows]
        pipe.InitBuffer(max_before_buffer, strip_rows * sizeof(float));
        LocalTensor<float> max_before = max_before_buffer.Get<float>();
        TBuf<TPosition::VECCALC> rescale_buffer;  // float [strip_rows]
        pipe.InitBuffer(rescale_buffer, strip_rows * sizeof(float));
        LocalTensor<float> rescale = rescale_buffer.Get<float>();
        TBuf<TPosition::VECCALC> row_sum_buffer;  // float [strip_rows]
        pipe.InitBuffer(row_sum_buffer, strip_rows * sizeof(float));
        LocalTensor<float> row_sum = row_sum_buffer.Get<float>();
        TBuf<TPosition::VECCALC> indices_buffer;  // 0, 1, 2, ... to compare indices
        pipe.InitBuffer(indices_buffer, 256);
        LocalTensor<float> indices = indices_buffer.Get<float>();
        TBuf<TPosition::VECCALC> mask_buffer;  // results of comparisons, one bit each
        pipe.InitBuffer(mask_buffer, 256);
        LocalTensor<uint8_t> mask = mask_buffer.Get<uint8_t>();
        TBuf<TPosition::VECCALC> work_buffer;  // intermediate results
        pipe.InitBuffer(work_buffer, 8192);
        LocalTensor<float> work = work_buffer.Get<float>();
        TBuf<TPosition::VECCALC> work_other_buffer;  // intermediate results
        pipe.InitBuffer(work_other_buffer, 8192);
        LocalTensor<float> work_other = work_other_buffer.Get<float>();
        TBuf<TPosition::VECCALC> blocks_buffer;  // a value for each row, spread over a block
        pipe.InitBuffer(blocks_buffer, 2048);
        LocalTensor<float> blocks = blocks_buffer.Get<float>();
        TBuf<TPosition::VECCALC> column_work_buffer;  // intermediate results, one for each row
        pipe.InitBuffer(column_work_buffer, 256);
        LocalTensor<float> column_work = column_work_buffer.Get<float>();
        const int32_t core = GetBlockIdx() / 2;
        const int32_t strip = GetSubBlockIdx();  // this vector core's part of the rows, 64 of 128
        CreateVecIndex(indices, 0.f, 64);
        CrossCoreSetFlag<2, PIPE_MTE2>(S_free);  // S_exchange is free at first
        CrossCoreSetFlag<2, PIPE_MTE2>(acc_free);  // acc_exchange is free at first

        // with T.Kernel(T.ceildiv(seq_q, block_M), heads, batch, threads=threads) as (bx, by, bz)
        // each core takes every GetBlockNum()-th block
        // braces hold strides in 32-byte blocks, the result's and each operand's: those between the
        // blocks of a repeat, then those between repeats
        const int32_t grid_x = (seq_q + block_M - 1) / block_M;
        const int32_t grid_y = heads;
        const int32_t grid_z = batch;
        for (int32_t block = core; block < grid_x * grid_y * grid_z; block += GetBlockNum()) {
            const int32_t bx = block % grid_x;
            const int32_t by = block / grid_x % grid_y;
            const int32_t bz = block / grid_x / grid_y;
            const int32_t rows_left = seq_q - (bx * block_M + strip * strip_rows);
            const int32_t rows =
                rows_left > 0 ? (rows_left < strip_rows ? rows_left : strip_rows) : 0;

            // T.clear(acc)
            PipeBarrier<PIPE_V>();  // acc has been read
            Duplicate(acc, 0.f, strip_rows * dim);

            // T.clear(row_sum)
            Duplicate(row_sum, 0.f, strip_rows);

            // T.fill(row_max, -T.infinity(accum_dtype))
            Duplicate(row_max, -infinity, strip_rows);

            // Tiles of keys that no query of this block sees are not even loaded.
            const int32_t past = seq_kv - seq_q;
            const int32_t first = bx * block_M + past;

            // keys = T.min(seq_kv, first + block_M) if causal else seq_kv
            const int32_t keys = seq_kv < first + block_M ? seq_kv : first + block_M;

            // for ko in T.Pipelined(T.ceildiv(keys, block_N), num_stages=num_stages)
            for (int32_t ko = 0; ko < (keys + block_N - 1) / block_N; ++ko) {
                // S = Q @ K^T, and minus infinity where a query does not see a key.
                // T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True,
                // policy=T.GemmWarpPolicy.FullRow)
                CrossCoreWaitFlag(S_ready);  // S is in the workspace
                order<HardEvent::V_MTE2>();  // S has been written
                copy_in(S, S_exchange_gm[(size_t(core) * block_M + strip * strip_rows) * block_N],
                        strip_rows, block_N, block_N, block_N);
                CrossCoreSetFlag<2, PIPE_MTE2>(S_free);  // S has been read

                // if (ko + 1) * block_N > (first + 1 if causal else seq_kv)
                if ((ko + 1) * block_N > first + 1) {
                    // for i, j in T.Parallel(block_M, block_N)
                    // if ko * block_N + j >= end
                    // S[i, j] = -T.infinity(accum_dtype)
                    CompareScalar(mask, indices, float(seq_kv - ko * block_N), CMPMODE::GE, 64);
                    Duplicate(work, -infinity, strip_rows * block_N);
                    PipeBarrier<PIPE_V>();  // mask and work are complete
                    order<HardEvent::MTE2_V>();  // S is complete
                    for (int32_t i = 0; i < strip_rows; ++i) {
                        Select(work_other[i * block_N], mask, work[i * block_N], S[i * block_N],
                               SELMODE::VSEL_TENSOR_TENSOR_MODE, block_N);
                    }
                    Brcb(blocks, indices, 8, {1, 8});  // each element of indices fills a block
                    PipeBarrier<PIPE_V>();  // blocks is complete; work has been read
                    Sub(work, indices, blocks, 32, strip_rows, {1, 1, 0, 4, 0, 1});
                    PipeBarrier<PIPE_V>();  // work is complete
                    CompareScalar(mask, work, float(first + strip * strip_rows + 1 - ko * block_N),
                                  CMPMODE::GE, 2048);
                    PipeBarrier<PIPE_V>();  // work has been read
                    Duplicate(work, -infinity, strip_rows * block_N);
                    PipeBarrier<PIPE_V>();  // work is complete
                    Select(work_other, mask, work, work_other, SELMODE::VSEL_TENSOR_TENSOR_MODE,
                           strip_rows * block_N);
                    PipeBarrier<PIPE_V>();  // work_other is complete
                    Muls(S, work_other, 1.f, strip_rows * block_N);
                }

                // Exponentials are taken relative to the largest score so far. When it grows, what
                // was summed up under the old one shrinks.
                // T.copy(row_max, max_before)
                PipeBarrier<PIPE_V>();  // row_max is complete
                Muls(max_before, row_max, 1.f, strip_rows);

                // T.reduce_max(S, row_max, dim=1, clear=False)
                order<HardEvent::MTE2_V>();  // S is complete
                WholeReduceMax(column_work, S, 32, strip_rows, 1, 1, 4,
                               ReduceOrder::ORDER_ONLY_VALUE);
                PipeBarrier<PIPE_V>();  // column_work is complete; row_max has been read
                Max(row_max, row_max, column_work, strip_rows);

                // for i in T.Parallel(block_M)
                // rescale[i] = T.exp2((max_before[i] - row_max[i]) * scale)
                PipeBarrier<PIPE_V>();  // row_max is complete
                Sub(rescale, max_before, row_max, strip_rows);
                PipeBarrier<PIPE_V>();  // rescale is complete
                Muls(rescale, rescale, scale, strip_rows);
                PipeBarrier<PIPE_V>();  // rescale is complete
                Muls(rescale, rescale, 0.6931471805599453f, strip_rows);
                PipeBarrier<PIPE_V>();  // rescale is complete
                Exp(rescale, rescale, strip_rows);

                // row_sum[i] *= rescale[i]
                PipeBarrier<PIPE_V>();  // rescale is complete
                Mul(row_sum, row_sum, rescale, strip_rows);

                // for i, j in T.Parallel(block_M, dim)
                // acc[i, j] *= rescale[i]
                Brcb(blocks, rescale, 8, {1, 8});  // each element of rescale fills a block
                PipeBarrier<PIPE_V>();  // blocks is complete
                for (int32_t j = 0; j < 128; j += 64) {
                    Mul(acc[j], acc[j], blocks, 64, strip_rows, {1, 1, 0, 16, 16, 1});
                }

                // for i, j in T.Parallel(block_M, block_N)
                // S[i, j] = T.exp2(S[i, j] * scale - row_max[i] * scale)
                Muls(S, S, scale, strip_rows * block_N);
                Muls(column_work, row_max, scale, strip_rows);
                PipeBarrier<PIPE_V>();  // column_work is complete; blocks has been read
                Brcb(blocks, column_work, 8, {1, 8});  // each element of column_work fills a block
                PipeBarrier<PIPE_V>();  // blocks is complete
                Sub(S, S, blocks, 32, strip_rows, {1, 1, 0, 4, 4, 1});
                PipeBarrier<PIPE_V>();  // S is complete
                Muls(S, S, 0.6931471805599453f, strip_rows * block_N);
                PipeBarrier<PIPE_V>();  // S is complete
                Exp(S, S, strip_rows * block_N);

                // T.reduce_sum(S, row_sum, dim=1, clear=False)
                PipeBarrier<PIPE_V>();  // S is complete
                WholeReduceSum(column_work, S, 32, strip_rows, 1, 1, 4);
                PipeBarrier<PIPE_V>();  // column_work is complete
                Add(row_sum, row_sum, column_work, strip_rows);

                // T.copy(S, P)
                LocalTensor<half> P = P_queue.AllocTensor<half>();
                Cast(P, S, RoundMode::CAST_RINT, strip_rows * block_N);
                CrossCoreWaitFlag(P_free);  // P has been read
                P_queue.EnQue(P);
                P = P_queue.DeQue<half>();
                copy_out(P_exchange_gm[(size_t(core) * block_M + strip * strip_rows) * block_N], P,
                         strip_rows, block_N, block_N, block_N);
                P_queue.FreeTensor(P);
                CrossCoreSetFlag<2, PIPE_MTE3>(P_ready);  // P is in the workspace

                // T.gemm(P, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)
                CrossCoreWaitFlag(acc_ready);  // acc is in the workspace
                LocalTensor<float> acc_product = acc_product_queue.AllocTensor<float>();
                copy_in(acc_product,
                        acc_exchange_gm[(size_t(core) * block_M + strip * strip_rows) * dim],
                        strip_rows, dim, dim, dim);
                acc_product_queue.EnQue(acc_product);
                CrossCoreSetFlag<2, PIPE_MTE2>(acc_free);  // acc has been read
                acc_product = acc_product_queue.DeQue<float>();
                Add(acc, acc, acc_product, strip_rows * dim);
                acc_product_queue.FreeTensor(acc_product);
            }

            // for i, j in T.Parallel(block_M, dim)
            // acc[i, j] /= row_sum[i]
            PipeBarrier<PIPE_V>();  // row_sum is complete
            Brcb(blocks, row_sum, 8, {1, 8});  // each element of row_sum fills a block
            PipeBarrier<PIPE_V>();  // blocks is complete
            for (int32_t j = 0; j < 128; j += 64) {
                Div(acc[j], acc[j], blocks, 64, strip_rows, {1, 1, 0, 16, 16, 1});
            }

            // T.copy(acc, O[bz, by, bx * block_M : (bx + 1) * block_M, :])
            LocalTensor<half> acc_half = acc_half_queue.AllocTensor<half>();
            PipeBarrier<PIPE_V>();  // acc is complete
            Cast(acc_half, acc, RoundMode::CAST_RINT, strip_rows * dim);
            const int64_t acc_half_at =
                ((size_t(bz) * heads + by) * seq_q + bx * block_M + strip * strip_rows) * dim;
            acc_half_queue.EnQue(acc_half);
            acc_half = acc_half_queue.DeQue<half>();
            if (rows > 0) {
                copy_out(O_gm[acc_half_at], acc_half, rows, dim, dim, dim);
            }
            acc_half_queue.FreeTensor(acc_half);
        }

        CrossCoreWaitFlag(P_free);  // no flag stays set
    }
}
