// Hygon's dialect: HIP, with matrix builtins of its own where the chip has them.
#pragma once
#include "hip.h"
#include "fragments.h"

#if EMU_GFX == 0x928 || EMU_GFX == 0x936
#define EMU_MMAC(name, unit, type, total, bytes)                                              \
    template <class A, class B, class C>                                                      \
    EMU_INLINE C __builtin_amdgcn_mmac_##name(A a, B b, C c) {                                \
        return emu::product<unit, TYPE_##type, TYPE_##type, TYPE_##total, bytes>(a, b, c);    \
    }
EMU_MMAC(f32_16x16x16f16, FRAGMENTS_MMAC_16, F16, F32, 8)
EMU_MMAC(f32_16x16x16bf16, FRAGMENTS_MMAC_16, BF16, F32, 8)
EMU_MMAC(i32_16x16x32i8, FRAGMENTS_MMAC_32, S8, S32, 8)
#undef EMU_MMAC
#endif
