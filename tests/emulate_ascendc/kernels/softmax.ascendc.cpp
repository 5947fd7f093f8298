#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t ROWS = 4;
constexpr uint32_t MOST_COLUMNS = 1024;

// One unit waits for the other.
template <HardEvent event>
__aicore__ inline void order() {
  const TEventID id = GetTPipePtr()->AllocEventID<event>();
  SetFlag<event>(id);
  WaitFlag<event>(id);
  GetTPipePtr()->ReleaseEventID<event>(id);
}

}  // namespace

// y[i, :] = softmax(x[i, :]), half in memory and float inside; columns at most MOST_COLUMNS.
extern "C" __global__ __aicore__ void softmax(GM_ADDR x, GM_ADDR y, uint32_t rows, uint32_t columns) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in_queue;
  TQue<TPosition::VECOUT, 1> out_queue;
  TBuf<TPosition::VECCALC> wide_buffer, work_buffer, one_buffer;
  pipe.InitBuffer(in_queue, 2, ROWS * MOST_COLUMNS * sizeof(half));
  pipe.InitBuffer(out_queue, 2, ROWS * MOST_COLUMNS * sizeof(half));
  pipe.InitBuffer(wide_buffer, ROWS * MOST_COLUMNS * sizeof(float));
  pipe.InitBuffer(work_buffer, MOST_COLUMNS * sizeof(float));
  pipe.InitBuffer(one_buffer, 32);
  GlobalTensor<half> x_gm, y_gm;
  x_gm.SetGlobalBuffer((__gm__ half*)x, static_cast<uint64_t>(rows) * columns);
  y_gm.SetGlobalBuffer((__gm__ half*)y, static_cast<uint64_t>(rows) * columns);
  LocalTensor<float> wide = wide_buffer.Get<float>();
  LocalTensor<float> work = work_buffer.Get<float>();
  LocalTensor<float> one = one_buffer.Get<float>();

  const uint32_t pitch = (columns + 15) / 16 * 16;
  const uint32_t tiles = (rows + ROWS - 1) / ROWS;
  for (uint32_t tile = GetBlockIdx(); tile < tiles; tile += GetBlockNum()) {
    const uint32_t row = tile * ROWS;
    const uint16_t height = static_cast<uint16_t>(rows - row < ROWS ? rows - row : ROWS);
    const uint64_t start = static_cast<uint64_t>(row) * columns;
    const DataCopyExtParams strip{height, static_cast<uint32_t>(columns * sizeof(half)), 0, 0, 0};

    LocalTensor<half> in = in_queue.AllocTensor<half>();
    DataCopyPad(in, x_gm[start], strip, {false, 0, 0, 0});
    in_queue.EnQue(in);

    in = in_queue.DeQue<half>();
    PipeBarrier<PIPE_V>();
    Cast(wide, in, RoundMode::CAST_NONE, height * pitch);
    in_queue.FreeTensor(in);
    PipeBarrier<PIPE_V>();
    for (uint32_t r = 0; r < height; ++r) {
      LocalTensor<float> line = wide[r * pitch];
      ReduceMax(one, line, work, columns);
      order<HardEvent::V_S>();
      const float most = one.GetValue(0);
      order<HardEvent::S_V>();
      Adds(line, line, -most, columns);
      PipeBarrier<PIPE_V>();
      Exp(line, line, columns);
      PipeBarrier<PIPE_V>();
      ReduceSum(one, line, work, columns);
      order<HardEvent::V_S>();
      const float sum = one.GetValue(0);
      order<HardEvent::S_V>();
      Muls(line, line, 1.0f / sum, columns);
      PipeBarrier<PIPE_V>();
    }
    LocalTensor<half> out = out_queue.AllocTensor<half>();
    Cast(out, wide, RoundMode::CAST_RINT, height * pitch);
    out_queue.EnQue(out);

    out = out_queue.DeQue<half>();
    DataCopyPad(y_gm[start], out, strip);
    out_queue.FreeTensor(out);
  }
}
