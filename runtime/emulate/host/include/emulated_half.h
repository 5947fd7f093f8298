// A 16-bit float as host programs fill arrays with it, for vendors who spell it as NVIDIA does.
#pragma once
#include "small_floats.h"

struct __half {
    unsigned short __x;
};
typedef __half half;

inline __half __float2half(float value) { return {emu_host::to_half(value)}; }
inline float __half2float(__half value) { return emu_host::from_half(value.__x); }
