// Clusters: their barrier, addresses in peers; and the pool of registers of a block.
#include <algorithm>
#include <cstring>

#include "../core/collective.h"
#include "../core/entry.h"
#include "bulk.h"

namespace emu {

struct RegisterPool {
    uint32_t free = 0;  // registers of the block that no warp holds
    struct Warp {
        uint32_t held = 0, calls = 0;  // registers a thread; setmaxnreg so far
        void* pc = nullptr;
    };
    std::vector<Warp> warps;
    std::vector<Fiber*> waiting;
};

// ---- the cluster's barrier

static void complete(Units& units) {
    ClusterBarrier& bar = units.cluster;
    ++bar.phase;
    bar.arrived = 0;
    if (launch.races) {
        ClockJoin all(units.team->actors);
        all.add(bar.released);
        for (const auto& arrival : bar.arrivals) {
            all.add(arrival.known);
            all.add(arrival.id, arrival.time);
        }
        bar.released = all.take();
    }
    bar.arrivals.clear();
    for (Fiber* f : bar.waiting) make_ready(f);
    bar.waiting.clear();
}

static std::string explain_cluster(const Fiber* f) {
    const ClusterBarrier& bar = f->team->units->cluster;
    return format("barrier.cluster.wait, where %u of %u threads have arrived", bar.arrived, f->team->live);
}

static void leave_cluster(Fiber* f) {
    if (!f->team->units) return;
    Units& units = *f->team->units;
    ClusterBarrier& bar = units.cluster;
    const uint32_t left = f->team->live - 1;
    if (bar.joined[f->id] == bar.phase + 1) --bar.arrived;
    if (bar.arrived && bar.arrived >= left) complete(units);
}

// ---- registers

static std::string explain_registers(const Fiber* f) {
    const RegisterPool& pool = *f->team->units->registers[f->block->rank];
    return format("setmaxnreg.inc, where its block has %u registers free", pool.free);
}

static RegisterPool& pool_of(Fiber* f, void* pc) {
    auto& pool = units_of(*f->team).registers[f->block->rank];
    if (pool) return *pool;
    const uint32_t bound = launch.entry->max_threads;
    if (!bound)
        fail(EMU_MISUSE, format("%s calls setmaxnreg at %s; without __launch_bounds__ the kernel has no register "
                                "cap at entry, and ptxas ignores it", who(f).c_str(), place(pc).c_str()), f);
    pool = std::make_shared<RegisterPool>();
    const uint32_t blocks = std::max(launch.entry->min_blocks, 1u);
    const uint32_t each = std::min(65536 / (bound * blocks) / 8 * 8, 256u);
    pool->warps.resize(f->block->warps.size());
    for (auto& warp : pool->warps) warp.held = each;
    return *pool;
}

static void set_registers(Group& group) {
    Fiber* f = group.warp->lane[0];
    void* pc = f->where;
    const uint32_t wanted = *static_cast<uint32_t*>(group.slot[0]);
    RegisterPool& pool = pool_of(f, pc);
    auto& warp = pool.warps[group.warp->number];
    ++warp.calls;
    warp.pc = pc;
    if (wanted > warp.held) return;  // each lane waits for them
    pool.free += (warp.held - wanted) * 32;
    warp.held = wanted;
    for (Fiber* waiting : pool.waiting) make_ready(waiting);
    pool.waiting.clear();
}

static void leave_registers(Fiber* f) {
    if (!f->team->units || f->lane || !checking()) return;
    const auto& pool = f->team->units->registers[f->block->rank];
    if (!pool) return;
    const auto& mine = pool->warps[f->linear / 32];
    const uint32_t first = f->linear / WARPGROUP * 4;
    for (uint32_t w = first; w < first + 4 && w < pool->warps.size(); ++w)
        // A warp that has still to come may be late; one that has ended never comes.
        if (pool->warps[w].calls < mine.calls && !f->block->warps[w].alive)
            fail(EMU_MISUSE, format("setmaxnreg at %s was executed by warp %u and not by warp %u of its "
                                    "warpgroup", place(mine.pc).c_str(), f->linear / 32, w), f);
        else if (pool->warps[w].calls > mine.calls)
            fail(EMU_MISUSE, format("setmaxnreg at %s was executed by warp %u and not by warp %u of its "
                                    "warpgroup", place(pool->warps[w].pc).c_str(), w, f->linear / 32), f);
}

static void at_exit(Fiber* f) {
    leave_cluster(f);
    leave_registers(f);
}
static const bool registered = (add_exit_hook(at_exit), true);

}  // namespace emu

using namespace emu;

extern "C" {

void emu_cluster_arrive(int releases) {
    void* pc = EMU_CALLER;
    (void)registered;
    Fiber* f = me();
    enter(f);
    Units& units = units_of(*f->team);
    ClusterBarrier& bar = units.cluster;
    if (bar.joined[f->id])
        fail(EMU_MISUSE, format("%s comes to barrier.cluster.arrive at %s a second time without "
                                "barrier.cluster.wait between", who(f).c_str(), place(pc).c_str()), f);
    bar.joined[f->id] = bar.phase + 1;
    if (launch.races && releases) {
        bar.arrivals.push_back({f->id, f->time, f->known});
        ++f->time;
    }
    if (++bar.arrived >= f->team->live) complete(units);
}

void emu_cluster_wait() {
    void* pc = EMU_CALLER;
    Fiber* f = me();
    enter(f);
    ClusterBarrier& bar = units_of(*f->team).cluster;
    const uint64_t joined = bar.joined[f->id];
    if (!joined)
        fail(EMU_MISUSE, format("%s comes to barrier.cluster.wait at %s without barrier.cluster.arrive",
                                who(f).c_str(), place(pc).c_str()), f);
    f->where = pc;
    while (bar.phase < joined) {
        bar.waiting.push_back(f);
        f->explain = explain_cluster;
        wait("barrier.cluster.wait", pc);
    }
    bar.joined[f->id] = 0;
    if (!launch.races) return;
    ClockJoin known(f->team->actors);
    known.add(f->known);
    known.add(bar.released);
    f->learn(known.take());
}

// Rank, size, the block's place in its cluster, the cluster's shape.
uint32_t emu_cluster_value(int what) {
    const Block* b = me()->block;
    const uint32_t* c = launch.cluster;
    switch (what) {
        case 0: return b->rank;
        case 1: return launch.team_blocks;
        case 2: case 3: case 4: return b->index[what - 2] % c[what - 2];
        case 5: case 6: case 7: return c[what - 5];
        case 8: case 9: case 10: return b->index[what - 8] / c[what - 8];
        default: return launch.grid[what - 11] / c[what - 11];
    }
}

uint32_t emu_map_shared(uint32_t address, uint32_t rank) {
    void* pc = EMU_CALLER;
    Fiber* f = me();
    enter(f);
    if (rank >= f->team->blocks.size())
        fail(EMU_MISUSE, format("%s maps a shared address to block %u of its cluster at %s; it has %zu blocks",
                                who(f).c_str(), rank, place(pc).c_str(), f->team->blocks.size()), f);
    const unsigned char* at = shared_pointer(f, address, 1, "mapa", pc);
    const Block* from = arena_of(*f->team, at);
    return shared_address(f, f->team->blocks[rank].arena + (at - from->arena), pc);
}

void emu_set_registers(uint32_t wanted, int up) {
    void* pc = EMU_CALLER;
    const char* name = up ? "setmaxnreg.inc" : "setmaxnreg.dec";
    Fiber* f = me();
    enter(f);
    if (wanted < 24 || wanted > 256 || wanted % 8)
        fail(EMU_MISUSE, format("%s calls %s with %u at %s; multiples of 8 from 24 to 256 are possible",
                                who(f).c_str(), name, wanted, place(pc).c_str()), f);
    RegisterPool& pool = pool_of(f, pc);
    auto& warp = pool.warps[f->linear / 32];
    const uint32_t held = warp.held;
    if (up ? wanted < held : wanted > held)
        fail(EMU_MISUSE, format("%s calls %s with %u at %s; it has %u", who(f).c_str(), name, wanted,
                                place(pc).c_str(), held), f);
    collective_of_all(name, &wanted, set_registers, pc);
    while (warp.held < wanted) {
        if (pool.free >= (wanted - warp.held) * 32) {
            pool.free -= (wanted - warp.held) * 32;
            warp.held = wanted;
            break;
        }
        pool.waiting.push_back(f);
        f->explain = explain_registers;
        wait(name, pc);
    }
}
}
