// What the generated list of a library's kernels and the runtime beside it agree on.
#pragma once
#include <stddef.h>

struct EmulatedKernel {
    const void* handle;  // the address by which programs name the kernel
    const char* name;
    const char* module;  // file beside this library
    const char* text;    // the kernel's file, for messages
};

extern const EmulatedKernel emulated_kernels[];
extern const int emulated_kernel_count;
extern const int emulated_checks;               // of emu_launch
extern const unsigned emulated_static_shared;   // bytes that a block has without asking
extern const unsigned emulated_total_shared;    // bytes that a block can have
extern const unsigned emulated_warp_size;
extern const int emulated_level;                // compute capability, ten times; 0: none
