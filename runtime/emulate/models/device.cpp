// Indices of threads and blocks, and the few services that are no instruction.
#include <cstring>

#include "../core/schedule.h"
#include "../core/shadow.h"

using namespace emu;

struct Uint3 {
    uint32_t x, y, z;
};

// Vector accesses want the alignment of the whole vector.
static void* pointer(int shared, uint64_t at, int bytes, int count, const char* verb, void* pc) {
    Fiber* f = me();
    const auto all = unsigned(bytes * count);
    if (at % all)
        fail(EMU_MEMORY, format("%s %s %u bytes at %s through an address that is not a multiple of %u",
                                who(f).c_str(), verb, all, place(pc).c_str(), all), f);
    return shared ? shared_pointer(f, uint32_t(at), all, "a load or store", pc)
                  : reinterpret_cast<void*>(at);
}

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

uint32_t emu_linear_thread() { return me()->linear; }

void emu_load(int shared, uint64_t at, void* to, int bytes, int count) {
    const void* from = pointer(shared, at, bytes, count, "reads", EMU_CALLER);
    touch(me(), from, unsigned(bytes * count), Access::READ, EMU_CALLER);
    std::memcpy(to, from, size_t(bytes) * size_t(count));
}

void emu_store(int shared, uint64_t at, const void* from, int bytes, int count) {
    void* to = pointer(shared, at, bytes, count, "writes", EMU_CALLER);
    touch(me(), to, unsigned(bytes * count), Access::WRITE, EMU_CALLER);
    std::memcpy(to, from, size_t(bytes) * size_t(count));
}

void emu_atomic_at(int shared, int op, int type, uint64_t at, void* old, const void* value,
                   const void* compare) {
    void* to = shared ? shared_pointer(me(), uint32_t(at), 8, "an atomic", EMU_CALLER)
                      : reinterpret_cast<void*>(at);
    atomic(me(), op, type, to, old, value, compare, EMU_CALLER);
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
