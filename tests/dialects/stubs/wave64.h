// CUDA's names on waves of 64 lanes, through AMD's compiler: for type checks and assembly.
#pragma once
#include <hip/hip_runtime.h>

template <typename T>
static __device__ inline T __shfl_xor_sync(unsigned long long, T value, int mask) {
    return __shfl_xor(value, mask);
}

template <typename T>
static __device__ inline T __shfl_up_sync(unsigned long long, T value, int below, int width) {
    return __shfl_up(value, below, width);
}

template <typename T>
static __device__ inline T __shfl_sync(unsigned long long, T value, int lane, int width) {
    return __shfl(value, lane, width);
}

typedef _Float16 half;
static __device__ inline half __float2half(float x) { return half(x); }
