#pragma once
#define EMU_SMALL_EXTRA                                                   \
    EMU_INLINE EMU_SMALL(_Float16 x) { __builtin_memcpy(&bits, &x, 2); }  \
    EMU_INLINE operator _Float16() const { return emu::as<_Float16>(bits); } \
    EMU_INLINE explicit operator int() const { return (int)(float)*this; }
#include "../../emulate/half.h"
#undef EMU_SMALL_EXTRA
