// Iluvatar's dialect: CUDA's names on warps of 64 lanes. No assembler; of the matrix builtins the one that
// public programs call.
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

template <class A, class C>
EMU_INLINE C __ivcorex_matrix_mad_f32x4_f16x4(A a, A b, C c) {
    return emu::product<FRAGMENTS_MAD_16, TYPE_F16, TYPE_F16, TYPE_F32, 8>(a, b, c);
}
