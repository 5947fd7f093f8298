#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t ROWS = 8;
constexpr uint32_t CHUNK = 64;

}  // namespace

// y[i] = sum of x[i, :]; ROWS rows at a time, folded chunk by chunk into 64 sums a row.
extern "C" __global__ __aicore__ void row_sum(GM_ADDR x, GM_ADDR y, uint32_t rows, uint32_t columns) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  TPipe pipe;
  TBuf<TPosition::VECCALC> chunk_buffer, sum_buffer, result_buffer;
  pipe.InitBuffer(chunk_buffer, 2 * ROWS * CHUNK * sizeof(float));
  pipe.InitBuffer(sum_buffer, ROWS * CHUNK * sizeof(float));
  pipe.InitBuffer(result_buffer, ROWS * sizeof(float));
  GlobalTensor<float> x_gm, y_gm;
  x_gm.SetGlobalBuffer((__gm__ float*)x);
  y_gm.SetGlobalBuffer((__gm__ float*)y);
  LocalTensor<float> sum = sum_buffer.Get<float>();
  LocalTensor<float> result = result_buffer.Get<float>();

  const uint32_t tiles = (rows + ROWS - 1) / ROWS;
  for (uint32_t tile = GetBlockIdx(); tile < tiles; tile += GetBlockNum()) {
    const uint32_t row = tile * ROWS;
    const uint32_t height = rows - row < ROWS ? rows - row : ROWS;
    Duplicate(sum, 0.0f, ROWS * CHUNK);
    SetFlag<HardEvent::V_MTE2>(EVENT_ID0);
    SetFlag<HardEvent::V_MTE2>(EVENT_ID1);
    uint32_t turn = 0;
    for (uint32_t column = 0; column < columns; column += CHUNK, turn ^= 1) {
      const uint32_t width = columns - column < CHUNK ? columns - column : CHUNK;
      LocalTensor<float> chunk = chunk_buffer.GetWithOffset<float>(ROWS * CHUNK, turn * ROWS * CHUNK * sizeof(float));
      WaitFlag<HardEvent::V_MTE2>(turn);
      const uint32_t blocks = (width + 7) / 8;
      DataCopyPad(chunk, x_gm[static_cast<uint64_t>(row) * columns + column],
                  {static_cast<uint16_t>(height), static_cast<uint32_t>(width * sizeof(float)),
                   static_cast<uint32_t>((columns - width) * sizeof(float)), 8 - blocks, 0},
                  {false, 0, 0, 0.0f});
      SetFlag<HardEvent::MTE2_V>(turn);
      WaitFlag<HardEvent::MTE2_V>(turn);
      PipeBarrier<PIPE_V>();
      AscendC::Add(sum, sum, chunk, width, height, {1, 1, 1, 8, 8, 8});
      SetFlag<HardEvent::V_MTE2>(turn);
    }
    WaitFlag<HardEvent::V_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE2>(EVENT_ID1);
    PipeBarrier<PIPE_V>();
    WholeReduceSum(result, sum, 64, height, 1, 1, 8);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopyPad(y_gm[row], result, {1, static_cast<uint32_t>(height * sizeof(float)), 0, 0, 0});
    SetFlag<HardEvent::MTE3_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
  }
}
