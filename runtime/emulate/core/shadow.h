// Checks each access of a kernel: is it inside something, was it written, does it race.
#pragma once
#include "context.h"
#include "schedule.h"

namespace emu {

// What is known of one byte of shared memory.
enum Mark : uint8_t {
    PLACED = 1,     // inside an array
    WRITTEN = 2,    // by this block
    BUSY_WRITE = 4, // an asynchronous operation will write it
    BUSY_READ = 8,  // an asynchronous operation still reads it
};

enum class Access : uint8_t { READ, WRITE, ATOMIC };

// A load or store at `at`, before it happens. Does not return when it is wrong.
void check(Fiber* f, const void* at, uint64_t bytes, Access access, void* pc);
// The same when something is checked at all; for models.
inline void touch(Fiber* f, const void* at, uint64_t bytes, Access access, void* pc) {
    enter(f);
    if (checking()) check(f, at, bytes, access, pc);
}
// An access of f to its own stack where wgmma has accumulators.
void watch(Fiber* f, uintptr_t at, Access access, void* pc);
// Judges f's last suspicious write, now that it has happened.
void settle(Fiber* f);

// f touches shared memory of another block: the block must not have ended before.
void note_visit(Fiber* f, Block& block, Access access, void* pc);

// An asynchronous operation issued by `f` owns bytes of shared memory from begin to end. Other
// accesses in between are races. `end_write` also marks the bytes as written by `f` now.
void begin_write(Fiber* f, unsigned char* at, uint32_t bytes, void* pc);
void end_write(Fiber* f, unsigned char* at, uint32_t bytes, void* pc);
void begin_read(Fiber* f, unsigned char* at, uint32_t bytes, void* pc);
void end_read(Fiber* f, unsigned char* at, uint32_t bytes, void* pc);

// Does f's cp.async up to number `serial`; for the arrivals that wait for them.
void finish_copies(Fiber* f, uint32_t serial);

// Release and acquire through memory: fences, and atomics at one address.
void fence(Fiber* f);
void synchronize(Fiber* f, const void* at);

// One atomic operation (EmuAtomic, EmuType of include/emulate/codes.h); `old` gets what was there.
void atomic(Fiber* f, int op, int type, void* at, void* old, const void* value, const void* compare,
            void* pc);

// The tensors of a launch, and the room that their shadow takes.
void open_shadow(const EmuTensor* tensors, int count);
void close_shadow();
void clear_arena_shadow(Block& block);

// Shared memory of a block.
unsigned char* place_array(Block& block, const char* name, const void* site, uint32_t bytes,
                           uint32_t align, bool dynamic, void* pc);
// The block of the team whose arena holds `at`, or nullptr.
inline Block* arena_of(Team& team, const void* at) {
    Block* first = team.blocks.data();
    const size_t rank = size_t(static_cast<const unsigned char*>(at) - first->arena) / ARENA_BYTES;
    return rank < team.blocks.size() ? first + rank : nullptr;
}
// "A_shared", and the byte inside it.
const char* array_at(const Block& block, const void* at, uint32_t* byte);

// The 32-bit addresses of PTX: rank of the block in its team above bit 24.
uint32_t shared_address(Fiber* f, const void* at, void* pc);
unsigned char* shared_pointer(Fiber* f, uint32_t address, uint32_t bytes, const char* who_asks,
                              void* pc);

}  // namespace emu
