// A vendor's runtime interface that only looks on: launchers are compiled with it in their vendor's place.
// API(name) puts the prefix in front; STREAM is the struct behind its streams, LIMIT an attribute.
#pragma once
#include <stddef.h>

#ifdef STAND_IN_DIM3
struct dim3 {
    unsigned x, y, z;
};
#endif

#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)
#define API(name) JOIN(PREFIX, name)

enum API(Error_t) { API(Success) };
enum API(Attribute) { LIMIT = 97 };
enum API(FuncAttribute) { API(FuncAttributeMaxDynamicSharedMemorySize) = 8 };
typedef struct STREAM* API(Stream_t);

extern "C" {
const char* API(GetErrorString)(API(Error_t) error);
API(Error_t) API(GetDevice)(int* device);
API(Error_t) API(DeviceGetAttribute)(int* value, API(Attribute) which, int device);
API(Error_t) API(FuncSetAttribute)(const void* kernel, API(FuncAttribute) which, int value);
API(Error_t)
API(LaunchKernel)(const void* kernel, dim3 grid, dim3 block, void** args, size_t shared, API(Stream_t) stream);
}
