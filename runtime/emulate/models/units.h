// What sm_90 has beside its threads: mbarriers, bulk copies, wgmma, cluster barriers, register
// pools. One Units a team; made when a kernel first uses any of it.
//
// Order. An asynchronous operation is an actor with a clock of its own: its reads and writes of
// memory are recorded when it is issued, at a time of its unit that a thread learns only by the wait
// that ends the operation. So what is reported does not depend on when the operation takes effect.
//
// Effect. Bytes move as late as the program allows (when a wait needs them and no thread can run),
// or, with TILE2C_EMULATE_SCHEDULE=earliest, at once.
#pragma once
#include <deque>
#include <unordered_map>

#include "../core/shadow.h"

namespace emu {

// Slots of a block's units: mbarriers (bulk loads), threads that store in bulk, warpgroups.
constexpr uint32_t SLOT_BARRIER = 0, BARRIER_SLOTS = 64;
constexpr uint32_t SLOT_STORE = 64, STORE_SLOTS = 16;  // two each: source read, destination written
constexpr uint32_t SLOT_WARPGROUP = 96, WARPGROUP_SLOTS = 8;
constexpr uint32_t WARPGROUP = 128;

struct MBarrier {
    Block* block = nullptr;
    unsigned char* at = nullptr;
    uint32_t count = 0, pending = 0;
    int64_t bytes = 0;   // announced and not yet copied; below 0 when copies were first
    uint64_t phase = 0;  // phases completed
    uint32_t unit = 0;   // the unit of the copies that report to it
    uint32_t over = 0;   // time of the last of them that is over
    uint32_t made_by = 0, made_at = 0;  // thread and time of its init
    void* made_pc = nullptr;
    void* expected_pc = nullptr;  // where bytes were last announced
    std::vector<Barrier::Arrival> arrivals;
    ClockRef released;  // what the completed phases hand on
    ClockRef last_in, last_from, last_out;  // lanes mostly know the same: join it once
    bool has_last = false;
    bool is_seen = true;  // a thread has waited for the last completed phase
    std::vector<Fiber*> waiting;
};

// A tensor map as runtime/tensor_maps.py encodes it for the emulator; innermost dimension first.
struct TensorMap {
    unsigned char* address = nullptr;
    uint64_t dims[5], strides[4];
    uint32_t box[5];
    uint8_t rank, element_bytes, swizzle, element_kind, element_strides[5];
    uint8_t is_im2col = 0;  // its box is channels of pixels, and corners bound where pixels start
    int8_t lower[3], upper[3];
};

// Bytes between global memory and shared memory of one block (or of two blocks): a box of a map,
// or a run of bytes.
struct Transfer {
    bool is_tensor = false;
    TensorMap map;
    int32_t at[5] = {};
    int32_t moved[3] = {};  // im2col: from where a pixel starts to the element that is loaded
    unsigned char* shared = nullptr;
    unsigned char* other = nullptr;  // global; of another block for copies inside a cluster
    uint32_t bytes = 0;              // in shared memory
    int reduce = -1;                 // EmuAtomic of a reduction, -1: a copy
    int kind = 0;                    // of its elements, as in a map
};

// A bulk load that was issued and has not taken effect, for one block.
struct Load {
    Transfer transfer;
    uintptr_t barrier = 0;
    uint32_t time = 0;
    Fiber* issuer = nullptr;
    void* pc = nullptr;
    std::vector<unsigned char> value;  // of st.async: no source but a register
};

// A bulk store of one thread.
struct Store {
    Transfer transfer;
    uint32_t group = 0, read_time = 0, write_time = 0;
    bool is_read = false;    // its source was copied to `data`
    bool read_over = false;  // and its thread has waited for that
    std::vector<unsigned char> data;
    void* pc = nullptr;
};
struct StoreQueue {
    uint32_t slot = 0, open_group = 0;
    std::vector<Store> stores;
};

// An arrival that waits for cp.async of its thread.
struct Deferred {
    Fiber* f;
    uintptr_t barrier;
    uint32_t serial;
    const char* name;
    void* pc;
};

struct ClusterBarrier {
    uint64_t phase = 0;
    uint32_t arrived = 0;
    std::vector<uint64_t> joined;  // by thread: 1 + the phase it arrived in, 0 if it waited since
    std::vector<Barrier::Arrival> arrivals;
    ClockRef released;
    std::vector<Fiber*> waiting;
};

struct Warpgroup;
struct RegisterPool;

struct Units {
    Team* team = nullptr;
    bool early = false;
    std::unordered_map<uintptr_t, MBarrier> barriers;
    std::vector<uint32_t> barriers_made;  // by block
    std::vector<uint32_t> time;           // by unit: its last operation
    std::vector<uint32_t> timeouts;       // by thread: fruitless waits in a row
    std::unordered_map<uint32_t, ClockRef> granted;  // by thread: what the phase that woke it hands on
    std::deque<Load> loads;
    std::unordered_map<uint32_t, StoreQueue> stores;  // by thread
    std::vector<Deferred> deferred;
    std::vector<std::shared_ptr<Warpgroup>> warpgroups;  // by block and warpgroup
    std::vector<std::shared_ptr<RegisterPool>> registers;  // by block
    ClusterBarrier cluster;
};

Units& units_of(Team& team);

// The number of a unit: the index of its clock, less the threads.
inline uint32_t unit_of(const Block& block, uint32_t slot) { return block.rank * UNIT_SLOTS + slot; }

// The stand-in for an operation that f issues to `unit` now; it knows what f knows.
Fiber make_actor(Fiber* f, uint32_t unit, const char* role);
// f learns that `unit`'s operations up to `time` are over.
void learn_over(Fiber* f, uint32_t unit, uint32_t time);

// Refuses an asynchronous read of bytes that a thread wrote in the ordinary way and did not hand to
// the asynchronous proxy before it told anyone.
void check_proxy(const Fiber& actor, const unsigned char* at, uint32_t bytes, void* pc);
// The fences that do so: 0 shared memory, 1 global memory, 2 mbarriers.
void fence_proxy(Fiber* f, bool shared, bool global);
// Whether thread `id`'s action at `time` was fenced and then made known to `actor`.
bool is_fenced(const Fiber& actor, uint32_t id, uint32_t time, int kind);

// "full, byte 8"
std::string name_shared(const Block& block, const void* at);

}  // namespace emu
