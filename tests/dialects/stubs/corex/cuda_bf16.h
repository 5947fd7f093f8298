#pragma once
typedef __bf16 __nv_bfloat16;
static __device__ inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
static __device__ inline float __bfloat162float(__nv_bfloat16 x) { return float(x); }
