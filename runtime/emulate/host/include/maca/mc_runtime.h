// MetaX's runtime interface for programs that run emulated kernels; see emulated_runtime.h.
#pragma once

typedef enum mcDeviceAttribute_t {
    mcDeviceAttributeMaxThreadsPerBlock = 1,
    mcDeviceAttributeMaxSharedMemoryPerBlock = 8,
    mcDeviceAttributeWarpSize = 10,
    mcDeviceAttributeMultiProcessorCount = 16
} mcDeviceAttribute_t;

#define EMU_API(name) mc##name
#define EMU_STREAM MCstream_st
#define EMU_EVENT MCevent_st
#define EMU_ATTRIBUTE mcDeviceAttribute_t
#include "../emulated_runtime.h"
