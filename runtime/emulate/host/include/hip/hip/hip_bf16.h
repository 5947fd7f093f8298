// AMD's bfloat16 as a host program fills arrays with it.
#pragma once
#include "../../small_floats.h"

struct __hip_bfloat16 {
    unsigned short data;
};

inline __hip_bfloat16 __float2bfloat16(float value) { return {emu_host::to_bfloat(value)}; }
inline float __bfloat162float(__hip_bfloat16 value) { return emu_host::from_bfloat(value.data); }
