// NVIDIA's runtime interface for programs that run emulated kernels; see emulated_runtime.h.
#pragma once
#define CUDART_VERSION 12080

typedef enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
} cudaDeviceAttr;

#define EMU_API(name) cuda##name
#define EMU_STREAM CUstream_st
#define EMU_EVENT CUevent_st
#define EMU_ATTRIBUTE cudaDeviceAttr
#include "../emulated_runtime.h"

typedef enum cudaDriverEntryPointQueryResult {
    cudaDriverEntryPointSuccess = 0,
    cudaDriverEntryPointSymbolNotFound = 1
} cudaDriverEntryPointQueryResult;

enum { cudaEnableDefault = 0 };

typedef enum cudaLaunchAttributeID {
    cudaLaunchAttributeIgnore = 0,
    cudaLaunchAttributeClusterDimension = 4
} cudaLaunchAttributeID;

typedef union cudaLaunchAttributeValue {
    char pad[64];
    struct {
        unsigned x, y, z;
    } clusterDim;
} cudaLaunchAttributeValue;

typedef struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    char pad[4];
    cudaLaunchAttributeValue val;
} cudaLaunchAttribute;

typedef struct cudaLaunchConfig_st {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute* attrs;
    unsigned numAttrs;
} cudaLaunchConfig_t;

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** args);
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result);

#ifdef __cplusplus
}
#endif
