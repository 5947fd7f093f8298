#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t TILE = 1024;

class Add3 {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t n) {
    n_ = n;
    x_gm.SetGlobalBuffer((__gm__ half*)x, n);
    y_gm.SetGlobalBuffer((__gm__ half*)y, n);
    z_gm.SetGlobalBuffer((__gm__ half*)z, n);
    pipe.InitBuffer(x_queue, 2, TILE * sizeof(half));
    pipe.InitBuffer(y_queue, 2, TILE * sizeof(half));
    pipe.InitBuffer(z_queue, 2, TILE * sizeof(half));
  }

  __aicore__ inline void Process() {
    const uint32_t tiles = (n_ + TILE - 1) / TILE;
    for (uint32_t tile = GetBlockIdx(); tile < tiles; tile += GetBlockNum()) {
      const uint32_t start = tile * TILE;
      const uint32_t count = n_ - start < TILE ? n_ - start : TILE;
      CopyIn(start, count);
      Compute(count);
      CopyOut(start, count);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t start, uint32_t count) {
    DataCopyExtParams rows{1, static_cast<uint32_t>(count * sizeof(half)), 0, 0, 0};
    DataCopyPadExtParams<half> pad{false, 0, 0, 0};
    LocalTensor<half> x = x_queue.AllocTensor<half>();
    DataCopyPad(x, x_gm[start], rows, pad);
    x_queue.EnQue(x);
    LocalTensor<half> y = y_queue.AllocTensor<half>();
    DataCopyPad(y, y_gm[start], rows, pad);
    y_queue.EnQue(y);
  }

  __aicore__ inline void Compute(uint32_t count) {
    LocalTensor<half> x = x_queue.DeQue<half>();
    LocalTensor<half> y = y_queue.DeQue<half>();
    LocalTensor<half> z = z_queue.AllocTensor<half>();
    AscendC::Add(z, x, y, count);
    z_queue.EnQue(z);
    x_queue.FreeTensor(x);
    y_queue.FreeTensor(y);
  }

  __aicore__ inline void CopyOut(uint32_t start, uint32_t count) {
    LocalTensor<half> z = z_queue.DeQue<half>();
    DataCopyExtParams rows{1, static_cast<uint32_t>(count * sizeof(half)), 0, 0, 0};
    DataCopyPad(z_gm[start], z, rows);
    z_queue.FreeTensor(z);
  }

  TPipe pipe;
  TQue<TPosition::VECIN, 2> x_queue, y_queue;
  TQue<TPosition::VECOUT, 2> z_queue;
  GlobalTensor<half> x_gm, y_gm, z_gm;
  uint32_t n_;
};

}  // namespace

extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t n) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  Add3 op;
  op.Init(x, y, z, n);
  op.Process();
}
