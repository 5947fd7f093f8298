// MetaX's dialect: CUDA's names on waves of 64 lanes, vectors as clang has them, matrix builtins.
#pragma once
#include "device.h"
#include "vectors.h"
#include "math.h"
#include "bits.h"
#include "numbers.h"
#include "warp_64.h"
#include "atomics.h"
#include "vec.h"
#include "fragments.h"

#define __builtin_mxc_barrier_inst() ((void)emu_barrier(0, 0, 0, "barrier_inst"))

// 16-bit operands are vectors of four elements or of two registers; 8-bit ones are one register.
#define EMU_MXC(name, type, total, bytes)                                                                \
    template <class A, class B, class C>                                                                 \
    EMU_INLINE C __builtin_mxc_mma_16x16x16##name(A a, B b, C c) {                                       \
        return emu::product<FRAGMENTS_MXC_16, TYPE_##type, TYPE_##type, TYPE_##total, bytes>(a, b, c);   \
    }
EMU_MXC(f16, F16, F32, 8)
EMU_MXC(bf16, BF16, F32, 8)
EMU_MXC(i8, S8, S32, 4)
#undef EMU_MXC
