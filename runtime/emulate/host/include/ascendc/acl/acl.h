// AscendCL for programs that run emulated kernels; launches end before the call returns.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef int aclError;
typedef void* aclrtStream;

#define ACL_SUCCESS 0
#define ACL_ERROR_INVALID_PARAM 100000
#define ACL_ERROR_RT_AICORE_EXCEPTION 507015

typedef enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST = 0,
    ACL_MEMCPY_HOST_TO_DEVICE = 1,
    ACL_MEMCPY_DEVICE_TO_HOST = 2,
    ACL_MEMCPY_DEVICE_TO_DEVICE = 3
} aclrtMemcpyKind;

typedef enum aclrtMemMallocPolicy {
    ACL_MEM_MALLOC_HUGE_FIRST = 0,
    ACL_MEM_MALLOC_HUGE_ONLY,
    ACL_MEM_MALLOC_NORMAL_ONLY
} aclrtMemMallocPolicy;

typedef enum aclrtLastErrLevel { ACL_RT_THREAD_LEVEL = 0 } aclrtLastErrLevel;

#ifdef __cplusplus
extern "C" {
#endif

aclError aclInit(const char* config);
aclError aclFinalize(void);
aclError aclrtSetDevice(int32_t device);
aclError aclrtResetDevice(int32_t device);
aclError aclrtMalloc(void** pointer, size_t bytes, aclrtMemMallocPolicy policy);
aclError aclrtFree(void* pointer);
aclError aclrtMemcpy(void* to, size_t most, const void* from, size_t bytes, aclrtMemcpyKind kind);
aclError aclrtCreateStream(aclrtStream* stream);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtGetLastError(aclrtLastErrLevel level);
const char* aclGetRecentErrMsg(void);
void tile2c_emulated_launch(const char* name, uint32_t blocks, void** args);

#ifdef __cplusplus
}

// What `kernel<<<blocks, 0, stream>>>(values...)` becomes.
template <typename... Values>
void tile2c_emulated(const char* name, uint32_t blocks, int, aclrtStream, Values... values) {
    void* args[] = {&values..., nullptr};
    tile2c_emulated_launch(name, blocks, args);
}
#endif
