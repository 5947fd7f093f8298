// C = A @ B for half A (M x K), B (K x N), float C, in tiles of 32 x 48 x 32, on one cube core; written by
// hand. Rows and columns past the tensors are filled with zeros in L1.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t BM = 32, BN = 48, BK = 32;

extern "C" __global__ __aicore__ void gemm(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, uint32_t M,
                                           uint32_t N, uint32_t K) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  GlobalTensor<half> a_gm, b_gm, bias_gm;
  GlobalTensor<float> c_gm;
  a_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a), M * K);
  b_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b), K * N);
  bias_gm.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(bias), N);
  c_gm.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(c), M * N);
  TPipe pipe;
  TBuf<TPosition::A1> a1_buffer;
  TBuf<TPosition::B1> b1_buffer;
  TBuf<TPosition::A2> a2_buffer;
  TBuf<TPosition::B2> b2_buffer;
  TBuf<TPosition::C1> bias1_buffer;
  TBuf<TPosition::C2> bias2_buffer;
  TBuf<TPosition::CO1> sums_buffer;
  pipe.InitBuffer(a1_buffer, 2 * BM * BK * sizeof(half));
  pipe.InitBuffer(b1_buffer, 2 * BK * BN * sizeof(half));
  pipe.InitBuffer(a2_buffer, BM * BK * sizeof(half));
  pipe.InitBuffer(b2_buffer, BK * BN * sizeof(half));
  pipe.InitBuffer(bias1_buffer, 64 * sizeof(half));
  pipe.InitBuffer(bias2_buffer, 64 * sizeof(float));
  pipe.InitBuffer(sums_buffer, BM * BN * sizeof(float));
  LocalTensor<half> a2 = a2_buffer.Get<half>(), b2 = b2_buffer.Get<half>();
  LocalTensor<half> bias1 = bias1_buffer.Get<half>();
  LocalTensor<float> bias2 = bias2_buffer.Get<float>(), sums = sums_buffer.Get<float>();

  DataCopy(bias1, bias_gm, Nd2NzParams(1, 1, N, 0, N, 1, 1, 0));
  SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID2);
  WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID2);
  DataCopy(bias2, bias1, DataCopyParams(1, 2, 0, 0));
  SetFlag<HardEvent::MTE1_MTE2>(EVENT_ID0);
  SetFlag<HardEvent::MTE1_MTE2>(EVENT_ID1);
  SetFlag<HardEvent::M_MTE1>(EVENT_ID0);
  for (uint32_t k = 0; k < K; k += BK) {
    uint32_t turn = k / BK % 2, depth = K - k < BK ? K - k : BK;
    LocalTensor<half> a1 = a1_buffer.GetWithOffset<half>(BM * BK, turn * BM * BK * sizeof(half));
    LocalTensor<half> b1 = b1_buffer.GetWithOffset<half>(BK * BN, turn * BK * BN * sizeof(half));
    WaitFlag<HardEvent::MTE1_MTE2>(turn);
    if (depth < BK || M < BM || N < BN) {
      InitConstValue(a1, InitConstValueParams<half>(1, BM * BK / 16, 0, 0));
      InitConstValue(b1, InitConstValueParams<half>(1, BK * BN / 16, 0, 0));
      PipeBarrier<PIPE_MTE2>();
    }
    DataCopy(a1, a_gm[k], Nd2NzParams(1, M, depth, 0, K, BM, 1, 0));
    DataCopy(b1, b_gm[k * N], Nd2NzParams(1, depth, N, 0, N, BK, 1, 0));
    SetFlag<HardEvent::MTE2_MTE1>(turn);
    WaitFlag<HardEvent::MTE2_MTE1>(turn);
    WaitFlag<HardEvent::M_MTE1>(EVENT_ID0);
    for (uint32_t i = 0; i < BM / 16; ++i)
      LoadData(a2[i * BK * 16], a1[i * 256], LoadData2DParams(0, BK / 16, BM / 16, 0, 0, false, 0));
    for (uint32_t i = 0; i < BK / 16; ++i)
      LoadData(b2[i * BN * 16], b1[i * 256], LoadData2DParams(0, BN / 16, BK / 16, 0, 0, true, 0));
    SetFlag<HardEvent::MTE1_MTE2>(turn);
    SetFlag<HardEvent::MTE1_M>(EVENT_ID0);
    WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);
    if (k == 0) {
      Mmad(sums, a2, b2, bias2, MmadParams(BM, BN, BK, 0, false, false));
    } else {
      Mmad(sums, a2, b2, MmadParams(BM, BN, BK, 0, false, false));
    }
    SetFlag<HardEvent::M_MTE1>(EVENT_ID0);
  }
  WaitFlag<HardEvent::MTE1_MTE2>(EVENT_ID0);
  WaitFlag<HardEvent::MTE1_MTE2>(EVENT_ID1);
  WaitFlag<HardEvent::M_MTE1>(EVENT_ID0);
  SetFlag<HardEvent::M_FIX>(EVENT_ID0);
  WaitFlag<HardEvent::M_FIX>(EVENT_ID0);
  Fixpipe(c_gm, sums, FixpipeParamsV220(N, M, BM, N, true));
}
