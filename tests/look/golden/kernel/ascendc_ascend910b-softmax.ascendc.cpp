// softmax: Y[i, :] = softmax(X[i, :]), numerically stable.
//   from     softmax.py by tile2c 0.1.0
//   target   ascendc:ascend910b (never run on silicon)
//   again    tile2c softmax.py -o . --target ascendc:ascend910b
//   compile  bisheng -x asc --npu-arch=dav-2201 -O2 -fPIC -shared softmax.ascendc.cpp -o softmax.so
//   launch   40 cores, or fewer: at most M have work
//   sizes    M is free
//   memory   99744 of 196352 bytes of a core's UB
//   NaN      no document says what Max, Min and their reductions make of it
//   text     sha256 ecdd55135985  (edit freely: `tile2c --merge` keeps your changes)
#include "kernel_operator.h"

using namespace AscendC;

constexpr float LOG2_E = 1.44269504f;
constexpr int32_t N = 8192;
constexpr int32_t block_M = 1;

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

extern "C" __global__ __aicore__ void softmax(GM_ADDR X,  // half [M, N]
                                              GM_ADDR Y,  // half [M, N]
                                              int32_t M) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);  // vector cores: nothing here needs the cube
    GlobalTensor<half> X_gm;
    X_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(X));
    GlobalTensor<half> Y_gm;
    Y_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(Y));

    TPipe pipe;
    // x_half: half [N], filled by MTE2 for V, double buffered
    TQue<TPosition::VECIN, 1> x_half_queue;
    pipe.InitBuffer(x_half_queue, 2, N * sizeof(half));
    // x_half_out: half [N], filled by V for MTE3, double buffered
    TQue<TPosition::VECOUT, 1> x_half_out_queue;
    pipe.InitBuffer(x_half_out_queue, 2, N * sizeof(half));
    TBuf<TPosition::VECCALC> x_buffer;  // float [block_M, N]
    pipe.InitBuffer(x_buffer, block_M * N * sizeof(float));
    LocalTensor<float> x = x_buffer.Get<float>();
    TBuf<TPosition::VECCALC> row_max_buffer;  // float [block_M]
    pipe.InitBuffer(row_max_buffer, 64);
    LocalTensor<float> row_max = row_max_buffer.Get<float>();
    TBuf<TPosition::VECCALC> row_sum_buffer;  // float [block_M]
    pipe.InitBuffer(row_sum_buffer, 64);
    LocalTensor<float> row_sum = row_sum_buffer.Get<float>();
    TBuf<TPosition::VECCALC> row_work_buffer;  // intermediate results, one for each column
    pipe.InitBuffer(row_work_buffer, 1024);
    LocalTensor<float> row_work = row_work_buffer.Get<float>();
    TBuf<TPosition::VECCALC> one_work_buffer;  // an intermediate result
    pipe.InitBuffer(one_work_buffer, 32);
    LocalTensor<float> one_work = one_work_buffer.Get<float>();
    TBuf<TPosition::VECCALC> blocks_buffer;  // a value for each row, spread over a block
    pipe.InitBuffer(blocks_buffer, 256);
    LocalTensor<float> blocks = blocks_buffer.Get<float>();

    // with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx
    // each core takes every GetBlockNum()-th block
    // braces hold strides in 32-byte blocks, the result's and each operand's: those between the
    // blocks of a repeat, then those between repeats
    for (int32_t bx = GetBlockIdx(); bx < (M + block_M - 1) / block_M; bx += GetBlockNum()) {
        // T.copy(X[bx * block_M, 0], x)
        LocalTensor<half> x_half = x_half_queue.AllocTensor<half>();
        copy_in_row(x_half, X_gm[size_t(bx * block_M) * N], N);
        x_half_queue.EnQue(x_half);
        x_half = x_half_queue.DeQue<half>();
        PipeBarrier<PIPE_V>();  // x has been read
        Cast(x, x_half, RoundMode::CAST_NONE, N);
        x_half_queue.FreeTensor(x_half);

        // With the largest element of its row taken off, no exponential can overflow.
        // T.reduce_max(x, row_max, dim=1)
        PipeBarrier<PIPE_V>();  // x is complete
        ReduceMax(row_max, x, row_work, N);

        // for i, j in T.Parallel(block_M, N)
        // x[i, j] = T.exp2(x[i, j] * LOG2_E - row_max[i] * LOG2_E)
        PipeBarrier<PIPE_V>();  // x has been read
        Muls(x, x, LOG2_E, N);
        Muls(one_work, row_max, LOG2_E, 1);
        PipeBarrier<PIPE_V>();  // one_work is complete
        Brcb(blocks, one_work, 1, {1, 8});  // each element of one_work fills a block
        PipeBarrier<PIPE_V>();  // blocks is complete
        Sub(x, x, blocks, 64, 128, {1, 1, 0, 8, 8, 0});
        PipeBarrier<PIPE_V>();  // x is complete
        Muls(x, x, 0.6931471805599453f, N);
        PipeBarrier<PIPE_V>();  // x is complete
        Exp(x, x, N);

        // One division a row, not one an element.
        // T.reduce_sum(x, row_sum, dim=1)
        PipeBarrier<PIPE_V>();  // x is complete
        ReduceSum(row_sum, x, row_work, N);  // row_work stays untouched here

        // for i in T.Parallel(block_M)
        // row_sum[i] = 1 / row_sum[i]
        Duplicate(one_work, 1.f, 1);
        PipeBarrier<PIPE_V>();  // one_work and row_sum are complete
        Div(row_sum, one_work, row_sum, 1);

        // for i, j in T.Parallel(block_M, N)
        // x[i, j] *= row_sum[i]
        PipeBarrier<PIPE_V>();  // row_sum is complete
        Brcb(blocks, row_sum, 1, {1, 8});  // each element of row_sum fills a block
        PipeBarrier<PIPE_V>();  // blocks is complete
        Mul(x, x, blocks, 64, 128, {1, 1, 0, 8, 8, 0});

        // T.copy(x, Y[bx * block_M, 0])
        LocalTensor<half> x_half_out = x_half_out_queue.AllocTensor<half>();
        PipeBarrier<PIPE_V>();  // x is complete
        Cast(x_half_out, x, RoundMode::CAST_RINT, N);
        x_half_out_queue.EnQue(x_half_out);
        x_half_out = x_half_out_queue.DeQue<half>();
        copy_out_row(Y_gm[size_t(bx * block_M) * N], x_half_out, N);
        x_half_out_queue.FreeTensor(x_half_out);
    }
}
