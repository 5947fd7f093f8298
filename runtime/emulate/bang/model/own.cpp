// What the text reads and writes of memory itself. It is compiled with g++ -fsanitize=thread, which
// puts a call before each of its loads and stores, and linked without it: these bodies are ours.
//
// The vendor's guide has the core's loads and stores of NRAM in the Compute pipeline and those of
// global memory in IO: they come after what that pipeline was given, and after no other's.
// A call is no load or store, so memcpy and memset of a text are ours as well (see bang.h).
#include "state.h"

extern "C" {  // the module's own bytes, from the linker
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
}

namespace emu {

namespace {

void element(Space space, Pipe pipe, const void* at, uint64_t bytes, bool write) {
    Instruction own("the core", pipe, Line{0});
    if (write)
        own.write(space, at, bytes, "an element");
    else
        own.read(space, at, bytes, "an element");
    own.issue([=] {
        if (!write)
            core.took_unwritten |= unwritten(at, bytes);
        else if (!core.took_unwritten)
            mark_written(at, bytes, false);
    });
    perform(pipe, core.issued[pipe]);
}

// Whether it is a variable of the text: on its stack, or, as taskId and its tables, in the module.
bool is_variable(const void* at) {
    const char* byte = static_cast<const char*>(at);
    const auto above = byte - static_cast<const char*>(__builtin_frame_address(0));
    return (byte >= __ehdr_start && byte < _end) || (above >= 0 && above < 1 << 22);
}

void access(const void* at, uint64_t bytes, bool write) {
    const Space space = space_of(at);
    const char* did = write ? "writes" : "reads";
    if (space == NRAM) {
        element(NRAM, COMPUTE, at, bytes, write);
    } else if (space == WRAM) {
        stop(MISUSE, 0, "the core %s %s itself, but WRAM takes copies only", did, holder(at));
    } else if (space == SRAM) {
        stop(UNSUPPORTED, 0, "the core %s %s itself, but SRAM is not modelled", did, holder(at));
    } else if (tensor_at(at, bytes) || !is_variable(at)) {
        check_bounds("the core", 0, GDRAM, at, bytes, write);
        element(GDRAM, IO, at, bytes, write);
    }
}

// Calls are given the place behind them; an end of the launch leaves the text from there at once.
void hook(const void* at, uint64_t bytes, bool write, const void* behind) {
    if (!core.running || !bytes) return;
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
void* emu_memcpy(void* dst, const void* src, size_t bytes) {
    emu::hook(src, bytes, false, __builtin_return_address(0));
    emu::hook(dst, bytes, true, __builtin_return_address(0));
    return memcpy(dst, src, bytes);
}
void* emu_memset(void* dst, int value, size_t bytes) {
    emu::hook(dst, bytes, true, __builtin_return_address(0));
    return memset(dst, value, bytes);
}
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
