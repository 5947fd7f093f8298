// NVIDIA's 16-bit float as a host program fills arrays with it.
#pragma once
#include "../small_floats.h"

struct __half {
    unsigned short __x;
};
typedef __half half;

inline __half __float2half_rn(float value) { return {emu_host::to_half(value)}; }
inline __half __float2half(float value) { return __float2half_rn(value); }
inline float __half2float(__half value) { return emu_host::from_half(value.__x); }
