// CUDA's names on waves of 64 lanes, through AMD's compiler: for type checks and assembly.
#pragma once
#include <hip/hip_runtime.h>

template <typename T>
static __device__ inline T __shfl_xor_sync(unsigned long long, T value, int mask) {
    return __shfl_xor(value, mask);
}

typedef _Float16 half;
static __device__ inline half __float2half(float x) { return half(x); }
