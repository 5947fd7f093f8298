// The runtime interface of a vendor, as far as launchers and small programs call it, for the emulator.
// EMU_API(name) puts the vendor's prefix in front; the vendor's own header includes this one.
// Launches end before the call returns, so streams and events have nothing to wait for.
#pragma once
#include <stddef.h>
#include <stdint.h>

// Programs in a vendor's language say which functions are kernels; here all run on the host.
#define __global__

#ifdef __cplusplus
extern "C" {
#endif

typedef enum EMU_API(Error) {
    EMU_API(Success) = 0,
    EMU_API(ErrorInvalidValue) = 1,
    EMU_API(ErrorMemoryAllocation) = 2,
    EMU_API(ErrorInvalidDeviceFunction) = 98,
    EMU_API(ErrorInvalidDevice) = 101,
    EMU_API(ErrorLaunchFailure) = 719,
    EMU_API(ErrorNotSupported) = 801
} EMU_API(Error_t);

typedef enum EMU_API(MemcpyKind) {
    EMU_API(MemcpyHostToHost) = 0,
    EMU_API(MemcpyHostToDevice) = 1,
    EMU_API(MemcpyDeviceToHost) = 2,
    EMU_API(MemcpyDeviceToDevice) = 3,
    EMU_API(MemcpyDefault) = 4
} EMU_API(MemcpyKind);

typedef enum EMU_API(FuncAttribute) {
    EMU_API(FuncAttributeMaxDynamicSharedMemorySize) = 8
} EMU_API(FuncAttribute);

typedef struct EMU_STREAM* EMU_API(Stream_t);
typedef struct EMU_EVENT* EMU_API(Event_t);

typedef struct dim3 {
    unsigned x, y, z;
#ifdef __cplusplus
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
#endif
} dim3;

EMU_API(Error_t) EMU_API(Malloc)(void** pointer, size_t bytes);
EMU_API(Error_t) EMU_API(Free)(void* pointer);
EMU_API(Error_t) EMU_API(Memcpy)(void* to, const void* from, size_t bytes, EMU_API(MemcpyKind) kind);
EMU_API(Error_t) EMU_API(MemcpyAsync)(void* to, const void* from, size_t bytes,
                                      EMU_API(MemcpyKind) kind, EMU_API(Stream_t) stream);
EMU_API(Error_t) EMU_API(Memset)(void* pointer, int value, size_t bytes);
EMU_API(Error_t) EMU_API(MemsetAsync)(void* pointer, int value, size_t bytes, EMU_API(Stream_t) stream);

EMU_API(Error_t) EMU_API(GetDevice)(int* device);
EMU_API(Error_t) EMU_API(SetDevice)(int device);
EMU_API(Error_t) EMU_API(GetDeviceCount)(int* count);
EMU_API(Error_t) EMU_API(DeviceGetAttribute)(int* value, EMU_ATTRIBUTE attribute, int device);
EMU_API(Error_t) EMU_API(DeviceSynchronize)(void);
EMU_API(Error_t) EMU_API(GetLastError)(void);
EMU_API(Error_t) EMU_API(PeekAtLastError)(void);
const char* EMU_API(GetErrorString)(EMU_API(Error_t) error);
const char* EMU_API(GetErrorName)(EMU_API(Error_t) error);

EMU_API(Error_t) EMU_API(StreamCreate)(EMU_API(Stream_t)* stream);
EMU_API(Error_t) EMU_API(StreamDestroy)(EMU_API(Stream_t) stream);
EMU_API(Error_t) EMU_API(StreamSynchronize)(EMU_API(Stream_t) stream);
EMU_API(Error_t) EMU_API(EventCreate)(EMU_API(Event_t)* event);
EMU_API(Error_t) EMU_API(EventDestroy)(EMU_API(Event_t) event);
EMU_API(Error_t) EMU_API(EventRecord)(EMU_API(Event_t) event, EMU_API(Stream_t) stream);
EMU_API(Error_t) EMU_API(EventSynchronize)(EMU_API(Event_t) event);
EMU_API(Error_t) EMU_API(EventElapsedTime)(float* ms, EMU_API(Event_t) from, EMU_API(Event_t) to);

EMU_API(Error_t) EMU_API(FuncSetAttribute)(const void* kernel, EMU_API(FuncAttribute) attribute,
                                           int value);
EMU_API(Error_t) EMU_API(LaunchKernel)(const void* kernel, dim3 grid, dim3 block, void** args,
                                       size_t shared, EMU_API(Stream_t) stream);

#ifdef __cplusplus
}

template <typename T>
EMU_API(Error_t) EMU_API(Malloc)(T** pointer, size_t bytes) {
    return EMU_API(Malloc)(reinterpret_cast<void**>(pointer), bytes);
}
#endif
