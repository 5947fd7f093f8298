// CUDA's language for g++, so that a kernel's text can be compiled that nobody runs; launches go to driver.cpp.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define __global__
#define __device__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __align__(n) __attribute__((aligned(n)))

struct Index {
    int x, y, z;
};
static Index threadIdx, blockIdx;
struct alignas(16) float4 {
    float x, y, z, w;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x, unsigned y, unsigned z) : x(x), y(y), z(z) {}
};
typedef int cudaError_t;
typedef struct CUstream_st* cudaStream_t;
constexpr int cudaSuccess = 0, cudaFuncAttributeMaxDynamicSharedMemorySize = 8;
struct Extents {
    unsigned x, y, z;
};
extern "C" int cudaFuncSetAttribute(const void* kernel, int which, int value);
extern "C" int cudaLaunchKernel(const void* kernel, Extents grid, Extents block, void** args, size_t shared,
                                cudaStream_t stream);
inline int cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** args, size_t shared,
                            cudaStream_t stream) {
    return cudaLaunchKernel(kernel, Extents{grid.x, grid.y, grid.z}, Extents{block.x, block.y, block.z}, args,
                            shared, stream);
}
