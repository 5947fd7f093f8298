// cumsum: Y[i, j] = X[i, 0] + ... + X[i, j]
//   from     cumsum.py by tile2c 0.1.0
//   target   ascendc:ascend910b (never run on silicon)
//   again    tile2c cumsum.py -o . --target ascendc:ascend910b
//   compile  bisheng -x asc --npu-arch=dav-2201 -O2 -fPIC -shared cumsum.ascendc.cpp -o cumsum.so
//   launch   40 cores, or fewer: at most (M + 3) / 4 have work
//   sizes    M and N are free
//   memory   45440 of 196352 bytes of a core's UB
//   text     sha256 fad832152933  (edit freely: `tile2c --merge` keeps your changes)
#include "kernel_operator.h"

using namespace AscendC;

constexpr int32_t block_M = 4;
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

extern "C" __global__ __aicore__ void cumsum(GM_ADDR X,  // float [M, N]
                                             GM_ADDR Y,  // float [M, N]
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
    // tile_out: float [block_M, block_N], filled by V for MTE3, double buffered
    TQue<TPosition::VECOUT, 1> tile_out_queue;
    pipe.InitBuffer(tile_out_queue, 2, block_M * block_N * sizeof(float));
    TBuf<TPosition::VECCALC> carry_buffer;  // float [block_M]
    pipe.InitBuffer(carry_buffer, 64);
    LocalTensor<float> carry = carry_buffer.Get<float>();
    TBuf<TPosition::VECCALC> total_buffer;  // float [block_M]
    pipe.InitBuffer(total_buffer, 64);
    LocalTensor<float> total = total_buffer.Get<float>();
    TBuf<TPosition::VECCALC> row_work_buffer;  // intermediate results, one for each column
    pipe.InitBuffer(row_work_buffer, 2048);
    LocalTensor<float> row_work = row_work_buffer.Get<float>();
    TBuf<TPosition::VECCALC> work_buffer;  // intermediate results
    pipe.InitBuffer(work_buffer, 8192);
    LocalTensor<float> work = work_buffer.Get<float>();
    TBuf<TPosition::VECCALC> row_work_other_buffer;  // intermediate results, one for each column
    pipe.InitBuffer(row_work_other_buffer, 2048);
    LocalTensor<float> row_work_other = row_work_other_buffer.Get<float>();
    TBuf<TPosition::VECCALC> blocks_buffer;  // a value for each row, spread over a block
    pipe.InitBuffer(blocks_buffer, 256);
    LocalTensor<float> blocks = blocks_buffer.Get<float>();

    // with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx
    // each core takes every GetBlockNum()-th block
    // braces hold strides in 32-byte blocks, the result's and each operand's: those between the
    // blocks of a repeat, then those between repeats
    for (int32_t bx = GetBlockIdx(); bx < (M + block_M - 1) / block_M; bx += GetBlockNum()) {
        const int32_t rows = M - bx * block_M < block_M ? M - bx * block_M : block_M;

        // T.clear(carry)
        PipeBarrier<PIPE_V>();  // carry has been written
        Duplicate(carry, 0.f, rows);

        // for ko in T.serial(T.ceildiv(N, block_N))
        for (int32_t ko = 0; ko < (N + block_N - 1) / block_N; ++ko) {
            const int32_t columns = N - ko * block_N < block_N ? N - ko * block_N : block_N;

            // T.copy(X[bx * block_M, ko * block_N], tile)
            LocalTensor<float> tile = tile_queue.AllocTensor<float>();
            if (columns < block_N) {
                Duplicate(tile, 0.f, block_M * block_N);  // what lies outside the tensor is 0
                order<HardEvent::V_MTE2>();  // the zeros are there before the copy
            }
            copy_in(tile, X_gm[size_t(bx * block_M) * N + ko * block_N], rows, columns, N, block_N);
            tile_queue.EnQue(tile);

            // T.reduce_sum(tile, total, dim=1)
            tile = tile_queue.DeQue<float>();
            PipeBarrier<PIPE_V>();  // total has been read
            for (int32_t row = 0; row < rows; ++row) {
                // row_work stays untouched here
                ReduceSum(total[row], tile[row * block_N], row_work, block_N);
            }

            // T.cumsum(tile, dim=1)
            transpose(work, tile, 128, 16, 128, 16);  // columns of 32 stretches a row become rows
            tile_queue.FreeTensor(tile);
            for (int32_t row = 1; row < 16; ++row) {
                PipeBarrier<PIPE_V>();  // work is complete
                Add(work[row * 128], work[row * 128], work[(row - 1) * 128], 128);
            }
            PipeBarrier<PIPE_V>();  // work is complete
            transpose(row_work, work[1920], 4, 32, 16, 32);  // what each stretch comes to
            Duplicate(row_work_other, 0.f, 16);  // what the stretches before come to
            for (int32_t stretch = 1; stretch < 32; ++stretch) {
                PipeBarrier<PIPE_V>();  // row_work_other and row_work are complete
                Add(row_work_other[stretch * 16], row_work_other[(stretch - 1) * 16],
                    row_work[(stretch - 1) * 16], 16);
            }
            PipeBarrier<PIPE_V>();  // row_work_other is complete; row_work has been read
            transpose(row_work, row_work_other, 32, 4, 32, 16);  // a row for each row again
            PipeBarrier<PIPE_V>();  // row_work is complete
            for (int32_t row = 0; row < 16; ++row) {
                Add(work[row * 128], work[row * 128], row_work, 128);
            }
            LocalTensor<float> tile_out = tile_out_queue.AllocTensor<float>();
            PipeBarrier<PIPE_V>();  // work is complete
            transpose(tile_out, work, 16, 128, 16, 128);  // rows become columns again

            // for i, j in T.Parallel(block_M, block_N)
            // tile[i, j] += carry[i]
            Brcb(blocks, carry, (rows + 7) / 8, {1, 8});  // each element of carry fills a block
            PipeBarrier<PIPE_V>();  // tile_out and blocks are complete
            for (int32_t i = 0; i < rows; ++i) {
                Add(tile_out[i * block_N], tile_out[i * block_N], blocks[i * 8], 64, 8,
                    {1, 1, 0, 8, 8, 0});
            }

            // T.copy(tile, Y[bx * block_M, ko * block_N])
            tile_out_queue.EnQue(tile_out);
            tile_out = tile_out_queue.DeQue<float>();
            copy_out(Y_gm[size_t(bx * block_M) * N + ko * block_N], tile_out, rows, columns, N,
                     block_N);
            tile_out_queue.FreeTensor(tile_out);

            // Where the next tile goes on.
            // for i in T.Parallel(block_M)
            // carry[i] += total[i]
            Add(carry, carry, total, rows);
        }
    }
}
