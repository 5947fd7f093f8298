// AMD's runtime interface for programs that run emulated kernels; see emulated_runtime.h.
#pragma once

typedef enum hipDeviceAttribute_t {
    hipDeviceAttributeMaxThreadsPerBlock = 1,
    hipDeviceAttributeMaxSharedMemoryPerBlock = 8,
    hipDeviceAttributeWarpSize = 10,
    hipDeviceAttributeMultiprocessorCount = 16
} hipDeviceAttribute_t;

#define EMU_API(name) hip##name
#define EMU_STREAM ihipStream_t
#define EMU_EVENT ihipEvent_t
#define EMU_ATTRIBUTE hipDeviceAttribute_t
#include "../../emulated_runtime.h"
