// MetaX's matrix builtins as AMD's, whose operands and results lie alike.
#pragma once
#include "../wave64.h"

typedef unsigned MxcPair __attribute__((ext_vector_type(2)));
typedef _Float16 MxcHalves __attribute__((ext_vector_type(4)));
typedef short MxcBits __attribute__((ext_vector_type(4)));
typedef float MxcFloats __attribute__((ext_vector_type(4)));
typedef int MxcInts __attribute__((ext_vector_type(4)));

static __device__ inline MxcFloats __builtin_mxc_mma_16x16x16f16(MxcPair a, MxcPair b, MxcFloats c) {
    return __builtin_amdgcn_mfma_f32_16x16x16f16(
        __builtin_bit_cast(MxcHalves, a), __builtin_bit_cast(MxcHalves, b), c, 0, 0, 0);
}
static __device__ inline MxcFloats __builtin_mxc_mma_16x16x16bf16(MxcPair a, MxcPair b, MxcFloats c) {
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(
        __builtin_bit_cast(MxcBits, a), __builtin_bit_cast(MxcBits, b), c, 0, 0, 0);
}
static __device__ inline MxcInts __builtin_mxc_mma_16x16x16i8(int a, int b, MxcInts c) {
    return __builtin_amdgcn_mfma_i32_16x16x16i8(a, b, c, 0, 0, 0);
}
