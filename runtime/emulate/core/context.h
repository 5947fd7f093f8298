// The state of a launch: fibers (threads), warps, blocks, teams, and how to find one's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../abi.h"
#include "clock.h"

namespace emu {

struct Block;
struct Fiber;
struct Group;
struct Team;
struct Units;
struct Warp;
struct Worker;

constexpr int MAX_LANES = 128;
// Lanes of one warp, a bit each.
using LaneSet = unsigned __int128;
inline LaneSet one_lane(uint32_t lane) { return LaneSet(1) << lane; }
inline int first_lane(LaneSet set) {
    const auto low = static_cast<uint64_t>(set);
    return low ? __builtin_ctzll(low) : 64 + __builtin_ctzll(static_cast<uint64_t>(set >> 64));
}
inline int lane_count(LaneSet set) {
    return __builtin_popcountll(static_cast<uint64_t>(set)) +
           __builtin_popcountll(static_cast<uint64_t>(set >> 64));
}
constexpr int STACK_BITS = 17;  // 128 KiB a thread; untouched pages cost nothing
constexpr size_t STACK_BYTES = size_t(1) << STACK_BITS;
constexpr size_t ARENA_BYTES = 512 << 10;  // one block's shared memory with its red zones
constexpr size_t ARENA_START = 1024;       // shared address 0 is never valid
constexpr size_t RED_ZONE = 128;
constexpr uint32_t UNIT_SLOTS = 128;  // asynchronous units of a block that have clocks (models/units.h)

enum class State : uint8_t { READY, RUNNING, WAITING, DONE };

// A copy that was issued and not yet waited for.
struct Copy {
    unsigned char* dst;
    const unsigned char* src;
    uint32_t bytes, src_bytes;
    uint32_t group;
    void* pc;
    uint32_t serial = 0;  // in the order of issue
};

// A write that races unless it stores what is there already: judged when its thread comes back.
struct Suspect {
    uintptr_t at = 0;
    uint32_t bytes = 0;
    unsigned char before[64];
    void* pc;
    void* other_pc;
    uint32_t other_team, other_thread;
};

struct Fiber {
    void* sp = nullptr;
    Block* block = nullptr;
    Warp* warp = nullptr;
    Team* team = nullptr;
    State state = State::READY;
    bool fenced_any = false;
    uint32_t index[3] = {};
    uint32_t linear = 0;  // in the block
    uint32_t lane = 0;
    uint32_t id = 0;  // in the team
    const char* doing = nullptr;  // what a waiting fiber waits for, and from which line
    void* where = nullptr;
    std::string* asked = nullptr;  // the scheduler wants to know where it waits
    uint32_t result = 0;  // left by whoever completes a barrier with a reduction

    uint32_t time = 1;
    ClockRef known;
    const uint32_t* known_at = nullptr;  // known.get()->at, or zeros
    uint32_t fenced_time = 0;  // accesses up to here are released by the next atomic
    ClockRef fenced_known;
    Suspect suspect;

    uint32_t copy_group = 0, copy_serial = 0;
    std::vector<Copy> copies;
    uint32_t polls = 0;

    // What a thread waits for in more words than `doing`.
    std::string (*explain)(const Fiber*) = nullptr;
    // Its times just after a fence that hands ordinary writes to the asynchronous proxy: of shared
    // memory, of global memory, of initialised mbarriers.
    std::vector<uint32_t> proxy_fences[3];
    // The stack bytes that hold accumulators of wgmma; accesses to them are passed to `watch`.
    uintptr_t watch_lo = 0;
    size_t watch_bytes = 0;
    // Set in the stand-ins of asynchronous operations: their issuer's place, a unit's id and time.
    const char* role = nullptr;

    void learn(ClockRef clock);
};

// Whom a warp operation waits for: the lanes of its mask that have not ended; all lanes that a full
// warp has; or, when nothing else can run, those that came.
enum class Meet : uint8_t { MASK, WHOLE, PARTIAL };

// Lanes that meet at one warp operation. `run` does it for all of them.
using Run = void (*)(Group&);
struct Group {
    const char* name = nullptr;  // nullptr: not in use
    LaneSet mask = 0, arrived = 0;
    Meet how = Meet::MASK;
    Run run = nullptr;
    Warp* warp = nullptr;
    void* slot[MAX_LANES];
};

struct Warp {
    Block* block = nullptr;
    uint32_t number = 0;
    LaneSet exists = 0, alive = 0;
    Fiber* lane[MAX_LANES] = {};
    Group group[8];
};

// One of the 16 barriers of a block.
struct Barrier {
    uint32_t expected = 0, arrived = 0;  // expected 0: every live thread of the block
    uint32_t count = 0;                  // threads whose predicate was true
    std::vector<Fiber*> waiting;
    struct Arrival {
        uint32_t id, time;
        ClockRef known;
    };
    std::vector<Arrival> arrivals;  // of threads that did not stay to wait
};

struct SharedArray {
    const char* name;
    const void* site;
    uint32_t at, bytes;
};

// A member of a shared struct that has a name of its own; several may lie in the same bytes.
struct SharedPart {
    const char* name;
    uint32_t at, bytes;
};

// The last access of a thread, or of a unit that a thread set to work, to the shared memory of another block.
struct Visit {
    uint32_t actor, time;
    void* pc;
    bool reads;
    uint32_t thread;
};

struct Block {
    Team* team = nullptr;
    uint32_t index[3] = {};
    uint32_t linear = 0;  // in the grid
    uint32_t rank = 0;    // in the team
    uint32_t threads = 0, live = 0;
    Fiber* fibers = nullptr;
    std::vector<Warp> warps;
    std::vector<Barrier> barriers;
    unsigned char* arena = nullptr;  // ARENA_BYTES
    unsigned char* marks = nullptr;  // one a byte: Mark
    uint32_t top = ARENA_START;
    uint32_t static_bytes = 0;
    std::vector<SharedArray> arrays;
    std::vector<SharedPart> parts;
    std::vector<Visit> visits;  // of other blocks' threads
};

// The blocks that run together: a cluster, otherwise one block. Clocks span a team.
struct Team {
    Worker* worker = nullptr;
    uint32_t serial = 0;  // 1 + its number in the grid
    uint32_t threads = 0, live = 0;
    uint32_t actors = 0;  // threads and asynchronous units: the length of a clock
    Fiber* fibers = nullptr;
    std::vector<Block> blocks;
    std::vector<uint32_t> issuer;  // by unit: the thread that issued its last operation
    std::shared_ptr<Units> units;  // what sm_90 has beside threads; made when first used
};

struct Entry;

struct Launch {
    const Entry* entry = nullptr;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t block_threads = 0, team_blocks = 1;
    uint32_t units = 0;  // asynchronous units of a team
    uint64_t dynamic_shared = 0;
    void** args = nullptr;
    bool races = false, memory = false;
    uint32_t warp_size = 32;
    double seconds = 0;  // processor time that one team may take
};

// An OS thread that runs teams one after another.
struct Worker {
    void* sp = nullptr;  // of the scheduler, while a fiber runs
    Team team;
    std::vector<Fiber*> ring;
    size_t head = 0, tail = 0;
    bool failed = false;
    // A read of shared memory that nothing wrote: reported unless the reason turns out to be a race.
    EmuReport unwritten = {};
    volatile bool expired = false;
    volatile uint32_t ticks = 0;
    unsigned char* arenas = nullptr;
    unsigned char* marks = nullptr;
    EmuReport report = {};
};

// All fiber stacks of a launch lie side by side: a stack pointer tells whose it is, without
// thread-local storage.
struct Pool {
    void* reserved = nullptr;
    uintptr_t stacks = 0;
    size_t count = 0;
    Fiber* fibers = nullptr;
};

extern Launch launch;
extern Pool pool;

inline __attribute__((always_inline)) Fiber* me() {
#if defined(__x86_64__)
    uintptr_t sp;
    asm("movq %%rsp, %0" : "=r"(sp));
#else
    const auto sp = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
#endif
    const size_t at = (sp - pool.stacks) >> STACK_BITS;
    return at < pool.count ? pool.fibers + at : nullptr;
}
inline uintptr_t stack_of(const Fiber* f) {
    return pool.stacks + (size_t(f - pool.fibers) << STACK_BITS);
}
inline bool checking() { return launch.races || launch.memory; }

// The line of a model's caller: the model must not be inlined, and asks at its top.
#define EMU_CALLER __builtin_return_address(0)

// Ends the launch with a report; the fibers are abandoned where they stand.
void fill(EmuReport& report, EmuKind kind, const std::string& text, const Fiber* a, const char* array,
          const Fiber* b);
[[noreturn]] void fail(EmuKind kind, const std::string& text, const Fiber* a = nullptr,
                       const char* array = "", const Fiber* b = nullptr);
// "<pc:HEX>", with "+HEX" for each caller when it is the running thread that stands there.
std::string place(const void* pc);
std::string who(const Fiber* f);          // "thread 3 of block (0, 1)"
std::string shown(LaneSet lanes);         // 0xffffffff
std::string who(uint32_t team, uint32_t thread);  // the same, of a team that may be gone
// The thread behind an actor of a running team: itself, or who issued a unit's last operation.
const Fiber* thread_of(const Team& team, uint32_t actor);
// The index in the grid of block `rank` of team number `team`.
void block_index(uint32_t team, uint32_t rank, uint32_t (&index)[3]);
__attribute__((format(printf, 1, 2))) std::string format(const char* form, ...);

}  // namespace emu
