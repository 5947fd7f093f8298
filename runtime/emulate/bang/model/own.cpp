// What the text reads and writes of memory itself. It is compiled with g++ -fsanitize=thread, which
// puts a call before each of its loads and stores, and linked without it: these bodies are ours.
//
// The vendor's guide has the core's loads and stores of NRAM in the Compute pipeline and those of
// global memory in IO: they come after what that pipeline was given, and after no other's.
#include "state.h"

extern "C" {  // the module's own bytes, from the linker
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
}

namespace emu {

namespace {

void access_nram(void* at, uint64_t bytes, bool write) {
    Instruction own("the core", COMPUTE, Line{0});
    if (write)
        own.write(NRAM, at, bytes, "an element");
    else
        own.read(NRAM, at, bytes, "an element");
    own.issue([=] {
        if (write) mark_written(at, bytes, false);
    });
    perform(COMPUTE, core.issued[COMPUTE]);
}

void access(void* at, uint64_t bytes, bool write) {
    const Space space = space_of(at);
    if (space == NRAM) {
        access_nram(at, bytes, write);
    } else if (space == GDRAM) {
        if (at >= __ehdr_start && at < _end) return;  // taskId, or a table of the text
        check_bounds("the core", 0, GDRAM, at, bytes, write);
        perform(IO, core.issued[IO]);
    } else if (space == WRAM) {
        stop(MISUSE, 0, "the core %s %s itself, but WRAM takes copies only",
             write ? "writes" : "reads", holder(at));
    } else if (space == SRAM) {
        stop(UNSUPPORTED, 0, "the core %s %s itself, but SRAM is not modelled",
             write ? "writes" : "reads", holder(at));
    }
}

// Calls are given the place behind them; an end of the launch leaves the text from there at once.
void hook(void* at, uint64_t bytes, bool write, const void* behind) {
    const auto above = static_cast<char*>(at) - static_cast<char*>(__builtin_frame_address(0));
    if (!core.running || (above >= 0 && above < 1 << 22)) return;  // the text's own variables
    core.own = behind;
    try {
        access(at, bytes, write);
    } catch (const Stop&) {
        core.own = nullptr;
        longjmp(core.leave, 1);
    }
    core.own = nullptr;
}

}  // namespace

}  // namespace emu

extern "C" {
#define EMU_HOOK(NAME, WRITE, BYTES) \
    void __tsan_##NAME(void* at) { emu::hook(at, BYTES, WRITE, __builtin_return_address(0)); }
#define EMU_HOOKS(N)                         \
    EMU_HOOK(read##N, false, N)              \
    EMU_HOOK(write##N, true, N)              \
    EMU_HOOK(unaligned_read##N, false, N)    \
    EMU_HOOK(unaligned_write##N, true, N)
EMU_HOOKS(1)
EMU_HOOKS(2)
EMU_HOOKS(4)
EMU_HOOKS(8)
EMU_HOOKS(16)
void __tsan_read_range(void* at, size_t bytes) {
    emu::hook(at, bytes, false, __builtin_return_address(0));
}
void __tsan_write_range(void* at, size_t bytes) {
    emu::hook(at, bytes, true, __builtin_return_address(0));
}
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
