#pragma once
static __device__ inline float __half2float(half x) { return float(x); }
