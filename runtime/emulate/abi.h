// The C interface of every emulated module, whatever dialect its kernels are written in.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A buffer that kernels may touch, so that accesses can be named and bounded.
struct EmuTensor {
    const char* name;
    void* base;
    uint64_t bytes;
    int32_t writable;
};

enum EmuKind { EMU_OK, EMU_RACE, EMU_MEMORY, EMU_DEADLOCK, EMU_MISUSE, EMU_UNSUPPORTED };
enum EmuChecks { EMU_CHECK_RACES = 1, EMU_CHECK_MEMORY = 2 };

// What went wrong first. Threads are linear inside their block, -1 when there is none. A place in
// `text` may stand as <pc:HEX>, an offset into the module that the caller turns into file and line;
// line_a and line_b are 0 then, and mean the first and the second such place.
struct EmuReport {
    int32_t kind;
    int32_t thread_a, thread_b;
    int32_t line_a, line_b;
    char array[128];
    char text[4096];
};

// Runs one kernel over a grid; `args` holds one pointer to the value of each parameter.
// Returns 0, or report->kind when the run stopped early.
int emu_launch(const char* entry, const uint32_t grid[3], const uint32_t block[3],
               const uint32_t cluster[3], uint64_t dynamic_shared, void** args, int arg_count,
               const struct EmuTensor* tensors, int tensor_count, int checks,
               struct EmuReport* report);

// Writes the sizes in bytes of the parameters of `entry`; returns how many it has, -1 if there is
// no such kernel. Optional: a module without it is launched unchecked.
int emu_parameters(const char* entry, uint64_t* sizes, int capacity);

#ifdef __cplusplus
}
#endif
