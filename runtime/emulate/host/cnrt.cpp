// CNRT for emulated kernels: memory is the host's, a launch runs the kernel's module.
#include "cnrt.h"

#include "device.h"

namespace {

thread_local cnrtRet_t last_error = cnrtSuccess;

cnrtRet_t told(cnrtRet_t error) {
    if (error != cnrtSuccess) last_error = error;
    return error;
}

}  // namespace

EXPORTED void tile2c_emulated_launch(const char* name, cnrtDim3_t tasks, cnrtFunctionType_t type,
                                     void** args) {
    std::lock_guard<std::mutex> lock(state().mutex);
    for (int i = 0; i < emulated_kernel_count; ++i) {
        if (std::strcmp(emulated_kernels[i].name, name)) continue;
        if (type != cnrtFuncTypeBlock) break;
        const uint32_t grid[] = {tasks.x, tasks.y, tasks.z}, block[] = {1, 1, 1}, cluster[] = {0, 0, 0};
        const int kind = run_kernel(emulated_kernels[i], grid, block, cluster, args, 0);
        if (kind != EMU_OK) told(cnrtErrorKernelTrap);
        return;
    }
    told(cnrtErrorArgsInvalid);
}

EXPORTED cnrtRet_t cnrtSetDevice(int ordinal) {
    return ordinal == 0 ? cnrtSuccess : told(cnrtErrorArgsInvalid);
}

EXPORTED cnrtRet_t cnrtMalloc(void** pointer, size_t bytes) {
    *pointer = bytes == 0 ? nullptr : allocate(bytes);
    return *pointer ? cnrtSuccess : told(cnrtErrorNoMem);
}

EXPORTED cnrtRet_t cnrtFree(void* pointer) {
    return release(pointer) ? cnrtSuccess : told(cnrtErrorArgsInvalid);
}

EXPORTED cnrtRet_t cnrtMemcpy(void* to, void* from, size_t bytes, cnrtMemTransDir_t) {
    if (bytes) std::memmove(to, from, bytes);
    return cnrtSuccess;
}

EXPORTED cnrtRet_t cnrtQueueCreate(cnrtQueue_t* queue) {
    *queue = nullptr;
    return cnrtSuccess;
}

EXPORTED cnrtRet_t cnrtQueueDestroy(cnrtQueue_t) { return cnrtSuccess; }
EXPORTED cnrtRet_t cnrtQueueSync(cnrtQueue_t) { return cnrtSuccess; }

EXPORTED cnrtRet_t cnrtGetLastError(void) {
    const cnrtRet_t error = last_error;
    last_error = cnrtSuccess;
    return error;
}

EXPORTED cnrtRet_t cnrtPeekAtLastError(void) { return last_error; }

EXPORTED const char* cnrtGetErrorStr(cnrtRet_t error) {
    switch (error) {
        case cnrtSuccess:
            return "no error";
        case cnrtErrorNoMem:
            return "no memory of this size";
        case cnrtErrorKernelTrap:
            return "the kernel did what it must not do";
        default:
            return "an argument that the runtime does not take";
    }
}
