// A vendor's runtime for emulated kernels: memory is the host's, a launch runs the kernel's module.
// Compiled with the headers of include/VENDOR in front; EMU_API is theirs.
#include EMU_HEADER

#include <chrono>

#include "device.h"

namespace {

using Error = EMU_API(Error_t);

thread_local Error last_error = EMU_API(Success);

Error told(Error error) {
    if (error != EMU_API(Success)) last_error = error;
    return error;
}

Error run(const void* handle, dim3 grid, dim3 block, const uint32_t (&cluster)[3], void** args,
          size_t shared) {
    std::lock_guard<std::mutex> lock(state().mutex);
    const EmulatedKernel* kernel = find_kernel(handle);
    if (!kernel) return EMU_API(ErrorInvalidDeviceFunction);
    const auto granted = state().dynamic_shared.find(handle);
    const size_t most = granted == state().dynamic_shared.end() ? emulated_static_shared : granted->second;
    if (shared > most) return EMU_API(ErrorInvalidValue);
    const uint32_t blocks[] = {grid.x, grid.y, grid.z}, threads[] = {block.x, block.y, block.z};
    switch (run_kernel(*kernel, blocks, threads, cluster, args, shared)) {
        case EMU_OK: return EMU_API(Success);
        case NO_MODULE: return EMU_API(ErrorInvalidDeviceFunction);
        default: return EMU_API(ErrorLaunchFailure);
    }
}

}  // namespace

EXPORTED Error EMU_API(Malloc)(void** pointer, size_t bytes) {
    if (!pointer) return told(EMU_API(ErrorInvalidValue));
    *pointer = bytes == 0 ? nullptr : allocate(bytes);
    return bytes == 0 || *pointer ? EMU_API(Success) : told(EMU_API(ErrorMemoryAllocation));
}

EXPORTED Error EMU_API(Free)(void* pointer) {
    if (!pointer) return EMU_API(Success);
    return release(pointer) ? EMU_API(Success) : told(EMU_API(ErrorInvalidValue));
}

EXPORTED Error EMU_API(Memcpy)(void* to, const void* from, size_t bytes, EMU_API(MemcpyKind)) {
    if (bytes) std::memmove(to, from, bytes);
    return EMU_API(Success);
}

EXPORTED Error EMU_API(MemcpyAsync)(void* to, const void* from, size_t bytes,
                                    EMU_API(MemcpyKind) kind, EMU_API(Stream_t)) {
    return EMU_API(Memcpy)(to, from, bytes, kind);
}

EXPORTED Error EMU_API(Memset)(void* pointer, int value, size_t bytes) {
    if (bytes) std::memset(pointer, value, bytes);
    return EMU_API(Success);
}

EXPORTED Error EMU_API(MemsetAsync)(void* pointer, int value, size_t bytes, EMU_API(Stream_t)) {
    return EMU_API(Memset)(pointer, value, bytes);
}

EXPORTED Error EMU_API(GetDevice)(int* device) {
    *device = 0;
    return EMU_API(Success);
}

EXPORTED Error EMU_API(SetDevice)(int device) {
    return device == 0 ? EMU_API(Success) : told(EMU_API(ErrorInvalidDevice));
}

EXPORTED Error EMU_API(GetDeviceCount)(int* count) {
    *count = 1;
    return EMU_API(Success);
}

EXPORTED Error EMU_API(DeviceGetAttribute)(int* value, EMU_ATTRIBUTE attribute, int device) {
    if (device != 0) return told(EMU_API(ErrorInvalidDevice));
    switch (int(attribute)) {
        case 1: *value = 1024; break;
        case 8: *value = int(emulated_static_shared); break;
        case 10: *value = int(emulated_warp_size); break;
        case 16: *value = 1; break;
        case 75: *value = emulated_level / 10; break;
        case 76: *value = emulated_level % 10; break;
        case 97: *value = int(emulated_total_shared); break;
        default: return told(EMU_API(ErrorInvalidValue));
    }
    return EMU_API(Success);
}

EXPORTED Error EMU_API(DeviceSynchronize)(void) { return EMU_API(Success); }

EXPORTED Error EMU_API(GetLastError)(void) {
    const Error error = last_error;
    last_error = EMU_API(Success);
    return error;
}

EXPORTED Error EMU_API(PeekAtLastError)(void) { return last_error; }

EXPORTED const char* EMU_API(GetErrorString)(Error error) {
    switch (error) {
        case EMU_API(Success): return "no error";
        case EMU_API(ErrorInvalidValue): return "invalid argument";
        case EMU_API(ErrorMemoryAllocation): return "out of memory";
        case EMU_API(ErrorInvalidDeviceFunction): return "not a kernel of this library";
        case EMU_API(ErrorInvalidDevice): return "there is one emulated device, number 0";
        case EMU_API(ErrorLaunchFailure): return "the kernel did what it must not do";
        case EMU_API(ErrorNotSupported): return "not emulated";
    }
    return "unknown error";
}

EXPORTED const char* EMU_API(GetErrorName)(Error error) { return EMU_API(GetErrorString)(error); }

EXPORTED Error EMU_API(StreamCreate)(EMU_API(Stream_t)* stream) {
    *stream = nullptr;
    return EMU_API(Success);
}

EXPORTED Error EMU_API(StreamDestroy)(EMU_API(Stream_t)) { return EMU_API(Success); }
EXPORTED Error EMU_API(StreamSynchronize)(EMU_API(Stream_t)) { return EMU_API(Success); }

struct EMU_EVENT {
    std::chrono::steady_clock::time_point at;
};

EXPORTED Error EMU_API(EventCreate)(EMU_API(Event_t)* event) {
    *event = new EMU_EVENT;
    return EMU_API(Success);
}

EXPORTED Error EMU_API(EventDestroy)(EMU_API(Event_t) event) {
    delete event;
    return EMU_API(Success);
}

EXPORTED Error EMU_API(EventRecord)(EMU_API(Event_t) event, EMU_API(Stream_t)) {
    event->at = std::chrono::steady_clock::now();
    return EMU_API(Success);
}

EXPORTED Error EMU_API(EventSynchronize)(EMU_API(Event_t)) { return EMU_API(Success); }

EXPORTED Error EMU_API(EventElapsedTime)(float* ms, EMU_API(Event_t) from, EMU_API(Event_t) to) {
    *ms = std::chrono::duration<float, std::milli>(to->at - from->at).count();
    return EMU_API(Success);
}

EXPORTED Error EMU_API(FuncSetAttribute)(const void* kernel, EMU_API(FuncAttribute), int value) {
    if (!find_kernel(kernel)) return told(EMU_API(ErrorInvalidDeviceFunction));
    if (value < 0 || unsigned(value) > emulated_total_shared) return told(EMU_API(ErrorInvalidValue));
    std::lock_guard<std::mutex> lock(state().mutex);
    state().dynamic_shared[kernel] = size_t(value);
    return EMU_API(Success);
}

EXPORTED Error EMU_API(LaunchKernel)(const void* kernel, dim3 grid, dim3 block, void** args,
                                     size_t shared, EMU_API(Stream_t)) {
    return told(run(kernel, grid, block, {0, 0, 0}, args, shared));
}

#ifdef CUDART_VERSION
#include "tensor_maps.inc"

EXPORTED Error cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** args) {
    uint32_t cluster[3] = {0, 0, 0};
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        if (config->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
        const auto& wanted = config->attrs[i].val.clusterDim;
        cluster[0] = wanted.x, cluster[1] = wanted.y, cluster[2] = wanted.z;
    }
    return told(run(kernel, config->gridDim, config->blockDim, cluster, args, config->dynamicSmemBytes));
}

EXPORTED Error cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                                unsigned long long,
                                                cudaDriverEntryPointQueryResult* result) {
    *function = nullptr;
    if (!std::strcmp(symbol, "cuTensorMapEncodeTiled"))
        *function = reinterpret_cast<void*>(&cuTensorMapEncodeTiled);
    if (!std::strcmp(symbol, "cuTensorMapEncodeIm2col"))
        *function = reinterpret_cast<void*>(&cuTensorMapEncodeIm2col);
    const bool known = *function != nullptr;
    if (result) *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
#endif
