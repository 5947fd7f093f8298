// NVIDIA's bfloat16 as a host program fills arrays with it.
#pragma once
#include "../small_floats.h"

struct __nv_bfloat16 {
    unsigned short __x;
};
typedef __nv_bfloat16 nv_bfloat16;

inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {emu_host::to_bfloat(value)}; }
inline __nv_bfloat16 __float2bfloat16(float value) { return __float2bfloat16_rn(value); }
inline float __bfloat162float(__nv_bfloat16 value) { return emu_host::from_bfloat(value.__x); }
