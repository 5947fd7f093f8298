// A bfloat16 as host programs fill arrays with it; EMU_BFLOAT is its name, of the vendor's own header.
#pragma once
#include "small_floats.h"

struct EMU_BFLOAT {
    unsigned short __x;
};

inline EMU_BFLOAT __float2bfloat16(float value) { return {emu_host::to_bfloat(value)}; }
inline float __bfloat162float(EMU_BFLOAT value) { return emu_host::from_bfloat(value.__x); }
