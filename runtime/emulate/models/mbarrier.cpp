// mbarriers: phases that end when all arrivals and all announced bytes are there.
#include "mbarrier.h"

#include <algorithm>
#include <cstring>

#include "bulk.h"

namespace emu {

constexpr uint32_t MOST = (1u << 20) - 1;
constexpr uint32_t PATIENCE = 16;  // fruitless rounds of a polling loop before it counts as stuck

// What lies in the 8 bytes: a kernel that writes over them breaks its barrier.
static uint64_t token_of(const unsigned char* at) {
    return 0x6d62617272696572ull ^ reinterpret_cast<uintptr_t>(at);
}

static std::string text_of(const MBarrier& bar) { return name_shared(*bar.block, bar.at); }

static std::string state_of(const MBarrier& bar) {
    std::string text = format("phase %llu lacks %u of %u arrivals", (unsigned long long)bar.phase,
                              bar.pending, bar.count);
    if (bar.bytes > 0) text += format(" and %lld announced bytes", (long long)bar.bytes);
    if (bar.bytes < 0)
        text += format("; %lld bytes came that nobody announced", (long long)-bar.bytes);
    if (bar.bytes && bar.expected_pc) text += " (last announced at " + place(bar.expected_pc) + ")";
    return text;
}

static unsigned char* resolve(Fiber* f, int shared, uint64_t address, const char* name, void* pc) {
    unsigned char* at = shared ? shared_pointer(f, uint32_t(address), 8, name, pc)
                               : reinterpret_cast<unsigned char*>(address);
    if (!arena_of(*f->team, at))
        fail(EMU_MEMORY, format("%s hands %s at %s a barrier that is not in shared memory",
                                who(f).c_str(), name, place(pc).c_str()), f);
    if (reinterpret_cast<uintptr_t>(at) % 8)
        fail(EMU_MEMORY, format("%s hands %s at %s a barrier whose address is not a multiple of 8",
                                who(f).c_str(), name, place(pc).c_str()), f);
    return at;
}

MBarrier* barrier_at(Units& units, const unsigned char* at) {
    const auto found = units.barriers.find(reinterpret_cast<uintptr_t>(at));
    return found == units.barriers.end() ? nullptr : &found->second;
}

MBarrier& find_barrier(Fiber* f, int shared, uint64_t address, const char* name, void* pc, bool by_unit) {
    enter(f);
    unsigned char* at = resolve(f, shared, address, name, pc);
    Block* block = arena_of(*f->team, at);
    MBarrier* bar = barrier_at(units_of(*f->team), at);
    uint64_t token;
    std::memcpy(&token, at, 8);
    if (!bar || !block->live || token != token_of(at)) {
        const std::string where = name_shared(*block, at);
        const std::string why = !bar           ? "no mbarrier.init made it"
                                : !block->live ? "its block of the cluster has ended"
                                : "its bytes were written over since its init at " + place(bar->made_pc);
        fail(EMU_MISUSE, format("%s uses the mbarrier %s in %s at %s; %s", who(f).c_str(), where.c_str(), name,
                                place(pc).c_str(), why.c_str()), f,
             where.substr(0, where.find(',')).c_str());
    }
    if (launch.races) {
        check(f, at, 8, Access::ATOMIC, pc);
        if (block != f->block && !by_unit) note_visit(f, *block, Access::ATOMIC, pc);
    }
    return *bar;
}

// ---- phases

static void complete_if_due(Units& units, MBarrier& bar, const Fiber* f, void* pc) {
    if (bar.pending || bar.bytes) return;
    // Two phases on, the parity is what it was: a wait for the first would not pass.
    if (checking() && !bar.is_seen)
        fail(EMU_MISUSE, format("%s ends phase %llu of the mbarrier %s at %s; no thread has waited for phase "
                                "%llu: are %u arrivals a phase too few?", who(f).c_str(),
                                (unsigned long long)bar.phase, text_of(bar).c_str(), place(pc).c_str(),
                                (unsigned long long)bar.phase - 1, bar.count), f);
    bar.is_seen = !bar.waiting.empty();
    ++bar.phase;
    bar.pending = bar.count;
    if (launch.races) {
        ClockJoin all(units.team->actors);
        all.add(bar.released);
        for (const auto& arrival : bar.arrivals) {
            all.add(arrival.known);
            all.add(arrival.id, arrival.time);
        }
        if (bar.over) all.add(units.team->threads + bar.unit, bar.over);
        bar.released = all.take();
    }
    bar.arrivals.clear();
    for (Fiber* f : bar.waiting) {
        f->result = 1;
        if (launch.races) units.granted[f->id] = bar.released;
        make_ready(f);
    }
    bar.waiting.clear();
}

void arrive(Units& units, MBarrier& bar, Fiber* f, uint32_t count, const char* name, void* pc) {
    if (count > bar.pending)
        fail(EMU_MISUSE, format("%s arrives %u times at the mbarrier %s in %s at %s; its %s", who(f).c_str(),
                                count, text_of(bar).c_str(), name, place(pc).c_str(),
                                state_of(bar).c_str()), f);
    bar.pending -= count;
    if (launch.races) {
        bar.arrivals.push_back({f->id, f->time, f->known});
        ++f->time;
    }
    complete_if_due(units, bar, f, pc);
}

static void change_bytes(MBarrier& bar, int64_t by, const Fiber* f, void* pc) {
    bar.bytes += by;
    if (bar.bytes > int64_t(MOST) || bar.bytes < -int64_t(MOST))
        fail(EMU_MISUSE, format("the mbarrier %s counts %lld bytes at %s; %u are possible",
                                text_of(bar).c_str(), (long long)bar.bytes, place(pc).c_str(), MOST), f);
}

void complete_bytes(Units& units, MBarrier& bar, uint32_t bytes, uint32_t time, const Fiber* f, void* pc) {
    change_bytes(bar, -int64_t(bytes), f, pc);
    bar.over = std::max(bar.over, time);
    complete_if_due(units, bar, f, pc);
}

// ---- waits

static void acquire(Fiber* f, MBarrier& bar, const ClockRef& released) {
    if (!launch.races || !released) return;
    if (!bar.has_last || bar.last_in.get() != f->known.get() || bar.last_from.get() != released.get()) {
        ClockJoin known(f->team->actors);
        known.add(f->known);
        known.add(released);
        bar.last_in = f->known;
        bar.last_from = released;
        bar.last_out = known.take();
        bar.has_last = true;
    }
    f->learn(bar.last_out);
}

static std::string explain(const Fiber* f) {
    for (const auto& [at, bar] : f->team->units->barriers)
        if (std::find(bar.waiting.begin(), bar.waiting.end(), f) != bar.waiting.end())
            return format("%s for the mbarrier %s, whose %s", f->doing, text_of(bar).c_str(),
                          state_of(bar).c_str());
    return f->doing;
}

// False: nothing can go on unless this thread does something else.
static bool wait_phase(Fiber* f, MBarrier& bar, uint64_t phase, bool is_parity, const char* name, void* pc) {
    Units& units = *f->team->units;
    const bool passed = is_parity ? (bar.phase & 1) != (phase & 1) : bar.phase > phase;
    f->where = pc;
    if (!passed) {
        bar.waiting.push_back(f);
        f->explain = explain;
        f->result = 0;
        wait(name, pc);
        if (!f->result) {
            ++units.timeouts[f->id];
            return false;
        }
    }
    units.timeouts[f->id] = 0;
    bar.is_seen = true;
    // Later phases may be over by now; only the one waited for is known to be.
    if (launch.races) acquire(f, bar, passed ? bar.released : units.granted[f->id]);
    return true;
}

// ---- arrivals put off by cp.async

static void finish(Units& units, const Deferred& d) {
    finish_copies(d.f, d.serial);
    if (MBarrier* bar = barrier_at(units, reinterpret_cast<unsigned char*>(d.barrier)))
        arrive(units, *bar, d.f, 1, d.name, d.pc);
}

// Before f's copies are missed for want of a wait: this was their wait.
static void finish_arrivals(Fiber* f) {
    if (!f->team->units) return;
    Units& units = *f->team->units;
    for (size_t i = 0; i < units.deferred.size();)
        if (units.deferred[i].f == f) {
            const Deferred d = units.deferred[i];
            units.deferred.erase(units.deferred.begin() + long(i));
            finish(units, d);
        } else {
            ++i;
        }
}

// ---- when nothing else can run

static bool is_awaited(Units& units, uintptr_t barrier) {
    const MBarrier* bar = barrier_at(units, reinterpret_cast<unsigned char*>(barrier));
    return bar && !bar->waiting.empty();
}

// Lets polling loops look at something else.
static bool time_out(Units& units) {
    bool any = false;
    for (auto& [at, bar] : units.barriers) {
        const auto patient = [&](Fiber* f) { return units.timeouts[f->id] >= PATIENCE; };
        const auto rest = std::stable_partition(bar.waiting.begin(), bar.waiting.end(), patient);
        for (auto f = rest; f != bar.waiting.end(); ++f) make_ready(*f);
        any |= rest != bar.waiting.end();
        bar.waiting.erase(rest, bar.waiting.end());
    }
    return any;
}

static bool on_idle(Team& team) {
    if (!team.units) return false;
    Units& units = *team.units;
    for (size_t i = 0; i < units.loads.size(); ++i)
        if (is_awaited(units, units.loads[i].barrier)) {
            const Load load = std::move(units.loads[i]);
            units.loads.erase(units.loads.begin() + long(i));
            perform(units, load);
            return true;
        }
    for (size_t i = 0; i < units.deferred.size(); ++i)
        if (is_awaited(units, units.deferred[i].barrier)) {
            const Deferred d = units.deferred[i];
            units.deferred.erase(units.deferred.begin() + long(i));
            finish(units, d);
            return true;
        }
    return time_out(units);
}

static const bool registered = (add_idle_hook(on_idle), add_exit_hook(finish_arrivals, true), true);

}  // namespace emu

using namespace emu;

extern "C" {

void emu_mbarrier_init(int shared, uint64_t address, uint32_t count) {
    void* pc = EMU_CALLER;
    (void)registered;
    Fiber* f = me();
    enter(f);
    unsigned char* at = resolve(f, shared, address, "mbarrier.init", pc);
    Units& units = units_of(*f->team);
    Block* block = arena_of(*f->team, at);
    const std::string where = name_shared(*block, at);
    if (block != f->block)
        fail(EMU_MISUSE, format("%s initialises an mbarrier of another block at %s", who(f).c_str(),
                                place(pc).c_str()), f);
    if (count == 0 || count > MOST)
        fail(EMU_MISUSE, format("%s initialises the mbarrier %s for %u arrivals at %s; 1 to %u are possible",
                                who(f).c_str(), where.c_str(), count, place(pc).c_str(), MOST), f);
    if (const MBarrier* old = barrier_at(units, at))
        fail(EMU_MISUSE, format("%s initialises the mbarrier %s at %s; it was initialised at %s and not "
                                "invalidated since", who(f).c_str(), where.c_str(), place(pc).c_str(),
                                place(old->made_pc).c_str()), f);
    if (checking()) check(f, at, 8, Access::WRITE, pc);
    f->suspect.bytes = 0;
    MBarrier bar;
    bar.block = block;
    bar.at = at;
    bar.count = bar.pending = count;
    bar.unit = unit_of(*block, SLOT_BARRIER + units.barriers_made[block->rank]++ % BARRIER_SLOTS);
    bar.made_by = f->id;
    bar.made_at = f->time;
    bar.made_pc = pc;
    const uint64_t token = token_of(at);
    std::memcpy(at, &token, 8);
    units.barriers.emplace(reinterpret_cast<uintptr_t>(at), std::move(bar));
}

void emu_mbarrier_inval(int shared, uint64_t address) {
    void* pc = EMU_CALLER;
    Fiber* f = me();
    MBarrier& bar = find_barrier(f, shared, address, "mbarrier.inval", pc);
    for (const Load& load : f->team->units->loads)
        if (load.barrier == reinterpret_cast<uintptr_t>(bar.at))
            fail(EMU_MISUSE, format("%s invalidates the mbarrier %s at %s; the copy issued at %s has still to "
                                    "report to it", who(f).c_str(), text_of(bar).c_str(), place(pc).c_str(),
                                    place(load.pc).c_str()), f);
    if (!bar.waiting.empty())
        fail(EMU_MISUSE, format("%s invalidates the mbarrier %s at %s; %s waits for it", who(f).c_str(),
                                text_of(bar).c_str(), place(pc).c_str(), who(bar.waiting[0]).c_str()), f);
    if (launch.races) check(f, bar.at, 8, Access::WRITE, pc);
    f->suspect.bytes = 0;
    f->team->units->barriers.erase(reinterpret_cast<uintptr_t>(bar.at));
}

// Arrives `count` times after announcing `bytes`; returns the phase that it arrived in.
uint64_t emu_mbarrier_arrive(int shared, uint64_t address, uint32_t count, uint32_t bytes, int drops,
                             const char* name) {
    void* pc = EMU_CALLER;
    Fiber* f = me();
    MBarrier& bar = find_barrier(f, shared, address, name, pc);
    const uint64_t phase = bar.phase;
    if (bytes) {
        change_bytes(bar, bytes, f, pc);
        bar.expected_pc = pc;
    }
    if (drops) bar.count -= count <= bar.pending ? count : 0;
    arrive(*f->team->units, bar, f, count, name, pc);
    return phase;
}

void emu_mbarrier_expect(int shared, uint64_t address, uint32_t bytes) {
    Fiber* f = me();
    MBarrier& bar = find_barrier(f, shared, address, "mbarrier.expect_tx", EMU_CALLER);
    change_bytes(bar, bytes, f, EMU_CALLER);
    bar.expected_pc = EMU_CALLER;
    complete_if_due(*f->team->units, bar, f, EMU_CALLER);
}

void emu_mbarrier_complete(int shared, uint64_t address, uint32_t bytes) {
    Fiber* f = me();
    MBarrier& bar = find_barrier(f, shared, address, "mbarrier.complete_tx", EMU_CALLER);
    complete_bytes(*f->team->units, bar, bytes, 0, f, EMU_CALLER);
}

int emu_mbarrier_wait(int shared, uint64_t address, uint64_t phase, int is_parity, const char* name) {
    void* pc = EMU_CALLER;
    Fiber* f = me();
    MBarrier& bar = find_barrier(f, shared, address, name, pc);
    if (bar.block != f->block)
        fail(EMU_MISUSE, format("%s waits for the mbarrier %s of another block at %s", who(f).c_str(),
                                text_of(bar).c_str(), place(pc).c_str()), f);
    return wait_phase(f, bar, phase, is_parity != 0, name, pc);
}

void emu_cp_async_mbarrier_arrive(int shared, uint64_t address, int counts) {
    void* pc = EMU_CALLER;
    const char* name = "cp.async.mbarrier.arrive";
    Fiber* f = me();
    MBarrier& bar = find_barrier(f, shared, address, name, pc);
    Units& units = *f->team->units;
    if (!counts) ++bar.pending;
    const Deferred d{f, reinterpret_cast<uintptr_t>(bar.at), f->copy_serial, name, pc};
    if (units.early)
        finish(units, d);
    else
        units.deferred.push_back(d);
}
}
