// AscendCL for emulated kernels: memory is the host's, a launch runs the kernel's module.
#include "acl/acl.h"

#include <chrono>

#include "device.h"

namespace {

thread_local aclError last_error = ACL_SUCCESS;
thread_local std::string last_text;

aclError told(aclError error, const char* text) {
    if (error != ACL_SUCCESS) last_error = error, last_text = text;
    return error;
}

}  // namespace

EXPORTED void tile2c_emulated_launch(const char* name, uint32_t blocks, void** args) {
    std::lock_guard<std::mutex> lock(state().mutex);
    for (int i = 0; i < emulated_kernel_count; ++i) {
        if (std::strcmp(emulated_kernels[i].name, name)) continue;
        const uint32_t grid[] = {blocks, 1, 1}, block[] = {1, 1, 1}, cluster[] = {0, 0, 0};
        const int kind = run_kernel(emulated_kernels[i], grid, block, cluster, args, 0);
        if (kind != EMU_OK) told(ACL_ERROR_RT_AICORE_EXCEPTION, "the kernel did what it must not do");
        return;
    }
    told(ACL_ERROR_INVALID_PARAM, "not a kernel of this library");
}

EXPORTED aclError aclInit(const char*) { return ACL_SUCCESS; }
EXPORTED aclError aclFinalize(void) { return ACL_SUCCESS; }

EXPORTED aclError aclrtSetDevice(int32_t device) {
    return device == 0 ? ACL_SUCCESS
                       : told(ACL_ERROR_INVALID_PARAM, "there is one emulated device, number 0");
}

EXPORTED aclError aclrtResetDevice(int32_t) { return ACL_SUCCESS; }

EXPORTED aclError aclrtMalloc(void** pointer, size_t bytes, aclrtMemMallocPolicy) {
    *pointer = bytes == 0 ? nullptr : allocate(bytes);
    return *pointer ? ACL_SUCCESS : told(ACL_ERROR_INVALID_PARAM, "no memory of this size");
}

EXPORTED aclError aclrtFree(void* pointer) {
    return release(pointer) ? ACL_SUCCESS : told(ACL_ERROR_INVALID_PARAM, "nobody allocated this");
}

EXPORTED aclError aclrtMemcpy(void* to, size_t most, const void* from, size_t bytes, aclrtMemcpyKind) {
    if (bytes > most) return told(ACL_ERROR_INVALID_PARAM, "more bytes than there is room for");
    if (bytes) std::memmove(to, from, bytes);
    return ACL_SUCCESS;
}

EXPORTED aclError aclrtCreateStream(aclrtStream* stream) {
    *stream = nullptr;
    return ACL_SUCCESS;
}

EXPORTED aclError aclrtDestroyStream(aclrtStream) { return ACL_SUCCESS; }
EXPORTED aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }

EXPORTED aclError aclrtGetLastError(aclrtLastErrLevel) {
    const aclError error = last_error;
    last_error = ACL_SUCCESS;
    return error;
}

EXPORTED const char* aclGetRecentErrMsg(void) { return last_text.empty() ? nullptr : last_text.c_str(); }
