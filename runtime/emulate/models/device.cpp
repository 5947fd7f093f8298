// Indices of threads and blocks, and the few services that are no instruction.
#include <cstring>

#include "../core/schedule.h"
#include "../core/shadow.h"

using namespace emu;

struct Uint3 {
    uint32_t x, y, z;
};

extern "C" {

Uint3 emu_thread_index() {
    const Fiber* f = me();
    return {f->index[0], f->index[1], f->index[2]};
}
Uint3 emu_block_index() {
    const Block* b = me()->block;
    return {b->index[0], b->index[1], b->index[2]};
}
Uint3 emu_block_size() { return {launch.block[0], launch.block[1], launch.block[2]}; }
Uint3 emu_grid_size() { return {launch.grid[0], launch.grid[1], launch.grid[2]}; }
uint32_t emu_lane() { return me()->lane; }

void emu_argument(void* to, void** args, size_t at, size_t bytes) {
    std::memcpy(to, args[at], bytes);
}

[[noreturn]] void emu_trap(const char* why) {
    Fiber* f = me();
    fail(EMU_MISUSE, format("%s stops at %s: %s", who(f).c_str(), place(EMU_CALLER).c_str(), why), f);
}

void emu_sleep() {
    enter(me());
    yield("a sleep", EMU_CALLER);
}

uint64_t emu_clock() {
    static uint64_t ticks = 0;
    return ticks += 32;
}
}
