// Moore Threads's runtime interface for programs that run emulated kernels; see emulated_runtime.h.
#pragma once

typedef enum musaDeviceAttr {
    musaDevAttrMaxThreadsPerBlock = 1,
    musaDevAttrMaxSharedMemoryPerBlock = 8,
    musaDevAttrWarpSize = 10,
    musaDevAttrMultiProcessorCount = 16,
    musaDevAttrMaxSharedMemoryPerBlockOptin = 97
} musaDeviceAttr;

#define EMU_API(name) musa##name
#define EMU_STREAM MUstream_st
#define EMU_EVENT MUevent_st
#define EMU_ATTRIBUTE musaDeviceAttr
#include "../emulated_runtime.h"
