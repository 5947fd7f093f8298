#include "shadow.h"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "cells.h"

namespace emu {

struct Range {
    uintptr_t lo = 0, hi = 0;
    const char* name = "";
    bool writable = true;
    Cell* cells = nullptr;  // of the word at `lo` rounded down; null: races cannot happen
};

struct CellBlock {
    uintptr_t lo, hi;
    Cell* cells;
};

static std::vector<Range> tensors;
static std::vector<Range> module_data;  // constants and __device__ variables of the kernel file
static std::vector<CellBlock> shadows;
static Range last_hit;
static std::map<uintptr_t, std::map<uint32_t, ClockRef>> released;  // by address, then team
static uintptr_t module_base;

uint32_t module_offset(const void* pc) {
    return uint32_t(reinterpret_cast<uintptr_t>(pc) - module_base);
}

// ---- set-up

static size_t cell_count(uintptr_t lo, uintptr_t hi) { return (hi + 3) / 4 - lo / 4; }

static Cell* new_cells(uintptr_t lo, uintptr_t hi) {
    void* memory = mmap(nullptr, cell_count(lo, hi) * sizeof(Cell), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    shadows.push_back({lo, hi, static_cast<Cell*>(memory)});
    return static_cast<Cell*>(memory);
}

// Tensors may share memory (a buffer passed twice): overlapping ones share their cells.
static void give_cells(std::vector<Range>& ranges) {
    std::vector<Range*> order;
    for (Range& range : ranges) order.push_back(&range);
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->lo < b->lo; });
    for (size_t i = 0; i < order.size();) {
        uintptr_t hi = order[i]->hi;
        size_t end = i + 1;
        bool writable = order[i]->writable;
        for (; end < order.size() && order[end]->lo / 4 <= (hi - 1) / 4; ++end) {
            hi = std::max(hi, order[end]->hi);
            writable |= order[end]->writable;
        }
        const uintptr_t lo = order[i]->lo;
        Cell* cells = writable ? new_cells(lo, hi) : nullptr;
        for (; i < end; ++i) order[i]->cells = cells ? cells + (order[i]->lo / 4 - lo / 4) : nullptr;
    }
}

static int find_module(dl_phdr_info* info, size_t, void*) {
    const auto mine = reinterpret_cast<uintptr_t>(&find_module);
    bool here = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        here |= part.p_type == PT_LOAD && mine - info->dlpi_addr - part.p_vaddr < part.p_memsz;
    }
    if (!here) return 0;
    module_base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD) continue;
        const uintptr_t lo = info->dlpi_addr + part.p_vaddr;
        module_data.push_back({lo, lo + part.p_memsz, "a variable of the file",
                               (part.p_flags & PF_W) != 0, nullptr});
    }
    return 1;
}

void open_shadow(const EmuTensor* list, int count) {
    tensors.clear();
    module_data.clear();
    last_hit = Range();
    dl_iterate_phdr(find_module, nullptr);
    for (int i = 0; i < count; ++i) {
        const auto lo = reinterpret_cast<uintptr_t>(list[i].base);
        if (list[i].bytes)
            tensors.push_back({lo, lo + list[i].bytes, list[i].name, list[i].writable != 0, nullptr});
    }
    if (launch.races) {
        give_cells(tensors);
        give_cells(module_data);
    }
}

void close_shadow() {
    for (const CellBlock& block : shadows)
        munmap(block.cells, cell_count(block.lo, block.hi) * sizeof(Cell));
    shadows.clear();
    released.clear();
}

// ---- what is wrong

static const char* verb(Access access) {
    return access == Access::READ ? "reads" : access == Access::WRITE ? "writes" : "updates";
}

static std::string describe(Fiber* f, uint64_t bytes, Access access, void* pc, const std::string& why) {
    return format("%s %s %llu bytes %s at %s", who(f).c_str(), verb(access), (unsigned long long)bytes,
                  why.c_str(), place(pc).c_str());
}
[[noreturn]] static void bad(Fiber* f, uint64_t bytes, Access access, void* pc, const std::string& why,
                             const char* array) {
    fail(EMU_MEMORY, describe(f, bytes, access, pc, why), f, array);
}

static std::string name_of(Fiber* f, uintptr_t at) {
    const auto* p = reinterpret_cast<const void*>(at);
    if (const Block* block = arena_of(*f->team, p)) {
        uint32_t byte = 0;
        const char* name = array_at(*block, p, &byte);
        return format("%s, byte %u", name, byte);
    }
    for (const auto* list : {&tensors, &module_data})
        for (const Range& r : *list)
            if (at - r.lo < r.hi - r.lo) return format("%s, byte %zu", r.name, size_t(at - r.lo));
    return "memory";
}

[[noreturn]] static void race(Fiber* f, uintptr_t at, bool writes, void* pc, const Record& other) {
    const std::string where = name_of(f, at);
    const std::string array = where.substr(0, where.find(','));
    const bool blocks = other.team != f->team->serial;
    const Fiber* second = blocks ? nullptr : thread_of(*f->team, other.thread);
    const bool other_writes = other.access != uint8_t(Access::READ);
    const void* other_pc = reinterpret_cast<const void*>(module_base + other.pc);
    fail(EMU_RACE,
         format("race in %s: %s %s at %s what %s %s at %s, with %s", where.c_str(), who(f).c_str(),
                writes ? "writes" : "reads", place(pc).c_str(),
                who(other.team, other.thread).c_str(), other_writes ? "writes" : "reads",
                place(other_pc).c_str(),
                blocks ? "no order between the two blocks" : "no barrier or other order between"),
         f, array.c_str(), second);
}

// ---- shared memory

void clear_arena_shadow(Block& block) {
    // Cells of earlier teams are told by their team's number; marks have no such number.
    std::memset(block.marks, 0, std::min<size_t>(ARENA_BYTES, block.top + RED_ZONE));
}

[[noreturn]] static void busy(Fiber* f, uintptr_t at, Access access, void* pc, uint8_t marks,
                              const Cell& cell) {
    const std::string where = name_of(f, at);
    const Record* owner = &cell.record[0];
    const uint8_t byte = uint8_t(1u << at % 4);
    for (const Record& r : cell.record)
        if (r.team == f->team->serial && (r.bytes & byte) &&
            (r.access != uint8_t(Access::READ)) == ((marks & BUSY_WRITE) != 0))
            owner = &r;
    const bool known = owner->team != 0;
    const Fiber* other = known ? thread_of(*f->team, owner->thread) : nullptr;
    const void* other_pc = reinterpret_cast<const void*>(module_base + owner->pc);
    fail(EMU_RACE,
         format("race in %s: %s %s at %s bytes that an asynchronous operation of %s is still %s "
                "(%s): no wait for it has ended",
                where.c_str(), who(f).c_str(), verb(access), place(pc).c_str(),
                other ? who(other).c_str() : "another thread",
                marks & BUSY_WRITE ? "writing" : "reading",
                known ? place(other_pc).c_str() : "issued elsewhere"),
         f, where.substr(0, where.find(',')).c_str(), other);
}

static void check_cells(Fiber* f, Cell* cells, uintptr_t base, uintptr_t at, uint64_t bytes,
                        Access access, void* pc, bool keep_team) {
    Record now{f->team->serial, f->time, module_offset(pc), uint16_t(f->id), 0, uint8_t(access)};
    const uintptr_t end = at + bytes;
    for (uintptr_t word = at & ~uintptr_t(3); word < end; word += 4) {
        const unsigned first = word < at ? unsigned(at - word) : 0;
        const unsigned last = end - word < 4 ? unsigned(end - word) : 4;
        now.bytes = uint8_t((0xfu << first) & (0xfu >> (4 - last)) & 0xfu);
        Cell& cell = cells[word / 4 - base / 4];
        const Record* other = enter_record(cell, now, f, keep_team);
        if (!other) continue;
        const Record old = *other;
        // Storing what is there already is tolerated; whether it does shows after the store.
        if (access == Access::WRITE && old.access == uint8_t(Access::WRITE) && !f->role &&
            bytes <= sizeof f->suspect.before) {
            if (!f->suspect.bytes) {
                f->suspect.at = at;
                f->suspect.bytes = uint32_t(bytes);
                std::memcpy(f->suspect.before, reinterpret_cast<void*>(at), bytes);
                f->suspect.pc = pc;
                f->suspect.other_pc = reinterpret_cast<void*>(uintptr_t(old.pc));
                f->suspect.other_team = old.team;
                f->suspect.other_thread = old.thread;
            }
            forget_writes(cell, now);
            if (enter_record(cell, now, f, keep_team) == nullptr) continue;
        }
        race(f, std::max(word, at), access != Access::READ, pc, old);
    }
}

void settle(Fiber* f) {
    Suspect& s = f->suspect;
    const auto* after = reinterpret_cast<const unsigned char*>(s.at);
    const uint32_t bytes = s.bytes;
    s.bytes = 0;
    for (uint32_t i = 0; i < bytes; ++i)
        if (after[i] != s.before[i])
            race(f, s.at + i, true, s.pc,
                 {s.other_team, 0, uint32_t(reinterpret_cast<uintptr_t>(s.other_pc)),
                  uint16_t(s.other_thread), 0xf, uint8_t(Access::WRITE)});
}

static void check_shared(Fiber* f, Block& block, uintptr_t at, uint64_t bytes, Access access,
                         void* pc) {
    const uintptr_t offset = at - reinterpret_cast<uintptr_t>(block.arena);
    uint8_t all = 0xff, any = 0;
    for (uint64_t i = 0; i < bytes; ++i) {
        const uint8_t mark = offset + i < ARENA_BYTES ? block.marks[offset + i] : 0;
        all &= mark;
        any |= mark;
    }
    if (!(all & PLACED)) {
        uint32_t byte = 0;
        const char* name = array_at(block, reinterpret_cast<void*>(at), &byte);
        bad(f, bytes, access, pc,
            format("of shared memory outside every array (%s, byte %d)", name, int(byte)), name);
    }
    if (launch.memory && access != Access::WRITE && !(all & WRITTEN) && !(any & BUSY_WRITE)) {
        uint32_t byte = 0;
        const char* name = array_at(block, reinterpret_cast<void*>(at), &byte);
        const std::string why = format("of shared memory that nothing wrote (%s, byte %u)", name, byte);
        if (!launch.races) bad(f, bytes, access, pc, why, name);
        // It may be written too late, for want of a barrier: then the race is the better report.
        EmuReport& report = f->team->worker->unwritten;
        if (!report.kind)
            fill(report, EMU_MEMORY, describe(f, bytes, access, pc, why), f, name, nullptr);
    }
    Cell* cells = arena_cells(block);
    if (launch.races && ((any & BUSY_WRITE) || ((any & BUSY_READ) && access != Access::READ)))
        for (uint64_t i = 0; i < bytes; ++i) {
            const uint8_t mark = block.marks[offset + i];
            if ((mark & BUSY_WRITE) || ((mark & BUSY_READ) && access != Access::READ))
                busy(f, at + i, access, pc, mark, cells[(offset + i) / 4]);
        }
    if (launch.races)
        check_cells(f, cells, reinterpret_cast<uintptr_t>(block.arena), at, bytes, access, pc, false);
    if (access != Access::READ)
        for (uint64_t i = 0; i < bytes; ++i)
            if (offset + i < ARENA_BYTES) block.marks[offset + i] |= WRITTEN;
}

// ---- global memory

static const Range* find(uintptr_t at, uint64_t bytes) {
    for (const auto* list : {&tensors, &module_data})
        for (const Range& r : *list)
            if (at >= r.lo && at + bytes <= r.hi && at + bytes >= at) return &r;
    return nullptr;
}

static std::string nearest(uintptr_t at) {
    const Range* best = nullptr;
    uintptr_t distance = ~uintptr_t(0);
    for (const Range& r : tensors) {
        const uintptr_t away = at < r.lo ? r.lo - at : at >= r.hi ? at - r.hi : 0;
        if (away < distance) best = &r, distance = away;
    }
    if (!best) return "outside every tensor";
    if (distance > (uintptr_t(1) << 32)) return "outside every tensor, far from all";
    return format("outside every tensor, %+lld bytes from the start of %s, which has %llu",
                  (long long)(at - best->lo), best->name, (unsigned long long)(best->hi - best->lo));
}

static const char* nearest_name(uintptr_t at) {
    const char* best = "";
    uintptr_t distance = uintptr_t(1) << 32;
    for (const Range& r : tensors) {
        const uintptr_t away = at < r.lo ? r.lo - at : at >= r.hi ? at - r.hi : 0;
        if (away < distance) best = r.name, distance = away;
    }
    return best;
}

static void check_global(Fiber* f, uintptr_t at, uint64_t bytes, Access access, void* pc) {
    if (!(at >= last_hit.lo && at + bytes <= last_hit.hi)) {
        const Range* hit = find(at, bytes);
        if (!hit)  // also without the memory check: going on would harm the process
            bad(f, bytes, access, pc, nearest(at), nearest_name(at));
        last_hit = *hit;
    }
    if (access != Access::READ && !last_hit.writable)
        bad(f, bytes, access, pc,
            format("of %s, which is read-only", last_hit.name), last_hit.name);
    if (last_hit.cells)
        check_cells(f, last_hit.cells, last_hit.lo, at, bytes, access, pc, true);
}

void check(Fiber* f, const void* p, uint64_t bytes, Access access, void* pc) {
    const auto at = reinterpret_cast<uintptr_t>(p);
    if (!f->role && at - stack_of(f) < STACK_BYTES) return;
    if (Block* block = arena_of(*f->team, p)) {
        if (block != f->block && !f->role && access != Access::ATOMIC) note_visit(f, *block, access, pc);
        check_shared(f, *block, at, bytes, access, pc);
    } else if (bytes)
        check_global(f, at, bytes, access, pc);
}

// ---- asynchronous operations

static void mark(Fiber* f, unsigned char* at, uint32_t bytes, uint8_t set, uint8_t clear) {
    Block* block = arena_of(*f->team, at);
    if (!block) return;
    for (uint32_t i = 0; i < bytes; ++i) {
        uint8_t& m = block->marks[at + i - block->arena];
        m = uint8_t((m & ~clear) | set);
    }
}

void begin_write(Fiber* f, unsigned char* at, uint32_t bytes, void* pc) {
    if (!checking()) return;
    check(f, at, bytes, Access::WRITE, pc);
    f->suspect.bytes = 0;
    mark(f, at, bytes, BUSY_WRITE, 0);
}
void end_write(Fiber* f, unsigned char* at, uint32_t bytes, void* pc) {
    if (!checking()) return;
    mark(f, at, bytes, WRITTEN, BUSY_WRITE);
    check(f, at, bytes, Access::WRITE, pc);
    f->suspect.bytes = 0;
}
void begin_read(Fiber* f, unsigned char* at, uint32_t bytes, void* pc) {
    if (!checking()) return;
    check(f, at, bytes, Access::READ, pc);
    mark(f, at, bytes, BUSY_READ, 0);
}
void end_read(Fiber* f, unsigned char* at, uint32_t bytes, void* pc) {
    if (!checking()) return;
    mark(f, at, bytes, 0, BUSY_READ);
    check(f, at, bytes, Access::READ, pc);
}

// ---- order through memory

void fence(Fiber* f) {
    if (!launch.races) return;
    f->fenced_time = f->time++;
    f->fenced_known = f->known;
    f->fenced_any = true;
}

void synchronize(Fiber* f, const void* at) {
    if (!launch.races) return;
    const auto key = reinterpret_cast<uintptr_t>(at);
    if (!f->fenced_any && !released.count(key)) return;
    auto& here = released[key];
    if (f->fenced_any) {
        ClockJoin mine(f->team->actors);
        mine.add(f->fenced_known);
        mine.add(f->id, f->fenced_time);
        ClockRef& old = here[f->team->serial];
        mine.add(old);
        const ClockRef joined = mine.take();
        for (const auto& [team, clock] : joined.get()->foreign) {
            ClockJoin both(clock.get()->at.size());
            both.add(here[team]);
            both.add(clock);
            here[team] = both.take();
        }
        old = joined;
    }
    ClockJoin next(f->team->actors);
    next.add(f->known);
    for (const auto& [team, clock] : here)
        if (team == f->team->serial)
            next.add(clock);
        else
            next.add_foreign(team, clock);
    f->learn(next.take());
}

}  // namespace emu
