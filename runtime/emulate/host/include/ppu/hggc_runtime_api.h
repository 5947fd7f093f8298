// T-Head's runtime interface for programs that run emulated kernels; see emulated_runtime.h.
#pragma once

typedef enum hggcDeviceAttr {
    hggcDevAttrMaxThreadsPerBlock = 1,
    hggcDevAttrMaxSharedMemoryPerBlock = 8,
    hggcDevAttrWarpSize = 10,
    hggcDevAttrMultiProcessorCount = 16,
    hggcDevAttrMaxSharedMemoryPerBlockOptin = 97
} hggcDeviceAttr;

#define EMU_API(name) hggc##name
#define EMU_STREAM HGstream_st
#define EMU_EVENT HGevent_st
#define EMU_ATTRIBUTE hggcDeviceAttr
#include "../emulated_runtime.h"
