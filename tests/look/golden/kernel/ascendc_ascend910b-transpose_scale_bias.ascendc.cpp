// transpose_scale_bias: Y[j, i] = X[i, j] * scale + bias[j]
//   from     transpose_scale_bias.py by tile2c 0.1.0
//   target   ascendc:ascend910b (never run on silicon)
//   again    tile2c transpose_scale_bias.py -o . --target ascendc:ascend910b
//   compile  bisheng -x asc --npu-arch=dav-2201 -O2 -fPIC -shared transpose_scale_bias.ascendc.cpp
//            -o transpose_scale_bias.so
//   launch   40 cores, or fewer: at most (N + 63) / 64 * ((M + 63) / 64) have work
//   sizes    M and N are free
//   memory   76288 of 196352 bytes of a core's UB
//   text     sha256 8bc688eb0593  (edit freely: `tile2c --merge` keeps your changes)
#include "kernel_operator.h"

using namespace AscendC;

constexpr int32_t block_M = 64;
constexpr int32_t block_N = 64;
constexpr float scale = 0.5f;

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

extern "C" __global__ __aicore__ void transpose_scale_bias(GM_ADDR X,  // half [M, N]
                                                           GM_ADDR bias,  // half [N]
                                                           GM_ADDR Y,  // half [N, M]
                                                           int32_t M, int32_t N) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);  // vector cores: nothing here needs the cube
    GlobalTensor<half> X_gm;
    X_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(X));
    GlobalTensor<half> bias_gm;
    bias_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(bias));
    GlobalTensor<half> Y_gm;
    Y_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(Y));

    TPipe pipe;
    // tile: half [block_M, block_N], filled by MTE2 for V, double buffered
    TQue<TPosition::VECIN, 1> tile_queue;
    pipe.InitBuffer(tile_queue, 2, block_M * block_N * sizeof(half));
    // bias_tile: half [block_N], filled by MTE2 for V, double buffered
    TQue<TPosition::VECIN, 1> bias_tile_queue;
    pipe.InitBuffer(bias_tile_queue, 2, block_N * sizeof(half));
    // Y_tile: half [block_N, block_M], filled by V for MTE3, double buffered
    TQue<TPosition::VECOUT, 1> Y_tile_queue;
    pipe.InitBuffer(Y_tile_queue, 2, block_N * block_M * sizeof(half));
    TBuf<TPosition::VECCALC> work_half_buffer;  // intermediate results
    pipe.InitBuffer(work_half_buffer, 8192);
    LocalTensor<half> work_half = work_half_buffer.Get<half>();
    TBuf<TPosition::VECCALC> work_buffer;  // intermediate results
    pipe.InitBuffer(work_buffer, 16384);
    LocalTensor<float> work = work_buffer.Get<float>();
    TBuf<TPosition::VECCALC> work_other_buffer;  // intermediate results
    pipe.InitBuffer(work_other_buffer, 16384);
    LocalTensor<float> work_other = work_other_buffer.Get<float>();
    TBuf<TPosition::VECCALC> column_work_buffer;  // intermediate results, one for each row
    pipe.InitBuffer(column_work_buffer, 256);
    LocalTensor<float> column_work = column_work_buffer.Get<float>();
    TBuf<TPosition::VECCALC> blocks_buffer;  // a value for each row, spread over a block
    pipe.InitBuffer(blocks_buffer, 2048);
    LocalTensor<float> blocks = blocks_buffer.Get<float>();

    // with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by)
    // each core takes every GetBlockNum()-th block
    // braces hold strides in 32-byte blocks, the result's and each operand's: those between the
    // blocks of a repeat, then those between repeats
    const int32_t grid_x = (N + block_N - 1) / block_N;
    const int32_t grid_y = (M + block_M - 1) / block_M;
    for (int32_t block = GetBlockIdx(); block < grid_x * grid_y; block += GetBlockNum()) {
        const int32_t bx = block % grid_x;
        const int32_t by = block / grid_x;
        const int32_t rows = M - by * block_M < block_M ? M - by * block_M : block_M;
        const int32_t tile_columns = N - bx * block_N < block_N ? N - bx * block_N : block_N;

        // T.copy(X[by * block_M, bx * block_N], tile)
        LocalTensor<half> tile = tile_queue.AllocTensor<half>();
        copy_in(tile, X_gm[size_t(by * block_M) * N + bx * block_N], rows, tile_columns, N,
                block_N);
        tile_queue.EnQue(tile);

        // Neighbours in i are neighbours in a row of Y, and lie a row apart in the tile.
        // for j, i in T.Parallel(block_N, block_M)
        LocalTensor<half> bias_tile = bias_tile_queue.AllocTensor<half>();
        copy_in_row(bias_tile, bias_gm[bx * block_N], tile_columns);
        bias_tile_queue.EnQue(bias_tile);

        // x = T.cast(tile[i, j], "float32")
        tile = tile_queue.DeQue<half>();
        transpose(work_half, tile, block_M, block_N, block_M, block_N);
        tile_queue.FreeTensor(tile);
        PipeBarrier<PIPE_V>();  // work_half is complete
        Cast(work, work_half, RoundMode::CAST_NONE, block_N * block_M);

        // Y[bx * block_N + j, by * block_M + i] = x * scale + bias[bx * block_N + j]
        PipeBarrier<PIPE_V>();  // work is complete
        Muls(work_other, work, scale, block_N * block_M);
        bias_tile = bias_tile_queue.DeQue<half>();
        Cast(column_work, bias_tile, RoundMode::CAST_NONE, block_N);
        bias_tile_queue.FreeTensor(bias_tile);
        PipeBarrier<PIPE_V>();  // column_work is complete
        Brcb(blocks, column_work, 8, {1, 8});  // each element of column_work fills a block
        PipeBarrier<PIPE_V>();  // blocks is complete
        Add(work_other, work_other, blocks, 64, block_N, {1, 1, 0, 8, 8, 1});
        LocalTensor<half> Y_tile = Y_tile_queue.AllocTensor<half>();
        PipeBarrier<PIPE_V>();  // work_other is complete
        Cast(Y_tile, work_other, RoundMode::CAST_RINT, block_N * block_M);
        Y_tile_queue.EnQue(Y_tile);
        Y_tile = Y_tile_queue.DeQue<half>();
        copy_out(Y_gm[size_t(bx * block_N) * M + by * block_M], Y_tile, tile_columns, rows, M,
                 block_M);
        Y_tile_queue.FreeTensor(Y_tile);
    }
}
