#pragma once
typedef __bf16 maca_bfloat16;
static __device__ inline maca_bfloat16 __float2bfloat16(float x) { return maca_bfloat16(x); }
