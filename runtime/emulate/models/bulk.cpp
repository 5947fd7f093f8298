// Bulk copies: issue, completion, groups of stores.
#include "bulk.h"

#include <algorithm>
#include <cstring>

namespace emu {

static const char* const LOAD = "the bulk load of ";
static const char* const STORE = "the bulk store of ";

void perform(Units& units, const Load& pending) {
    if (pending.value.empty())
        load(pending.transfer);
    else
        std::memcpy(pending.transfer.shared, pending.value.data(), pending.value.size());
    if (MBarrier* bar = barrier_at(units, reinterpret_cast<unsigned char*>(pending.barrier)))
        complete_bytes(units, *bar, pending.transfer.bytes, pending.time, pending.issuer, pending.pc);
}

// The barrier is made and visible to the unit that reports to it.
static void check_visible(const Fiber& actor, const MBarrier& bar, void* pc) {
    if (!launch.races || is_fenced(actor, bar.made_by, bar.made_at, 2)) return;
    const Fiber* maker = &actor.team->fibers[bar.made_by];
    const std::string where = name_shared(*bar.block, bar.at);
    fail(EMU_RACE,
         format("race in %s: %s reports at %s to the mbarrier that %s initialised at %s without "
                "fence.mbarrier_init (or fence.proxy.async) and a barrier after it", where.c_str(),
                who(&actor).c_str(), place(pc).c_str(), who(maker).c_str(), place(bar.made_pc).c_str()),
         &actor, where.substr(0, where.find(',')).c_str(), maker);
}

// Peers of a cluster have their arrays at the same offsets, also those not used there so far.
static void share_layout(Fiber* f, void* pc) {
    if (f->team->blocks.size() == 1) return;
    const std::vector<SharedArray> arrays = f->block->arrays;
    for (Block& block : f->team->blocks)
        for (const SharedArray& array : arrays)
            place_array(block, array.name, array.site, array.bytes, 1, true, pc);
}

static void issue(Fiber* f, Load&& pending) {
    Units& units = units_of(*f->team);
    if (units.early)
        perform(units, pending);
    else
        units.loads.push_back(std::move(pending));
}

// One load into the block of t.shared, reporting to the barrier at `barrier`.
static void issue_load(Fiber* f, const Transfer& t, unsigned char* barrier, const char* name, void* pc,
                       std::vector<unsigned char> value = {}) {
    MBarrier& bar = find_barrier(f, false, reinterpret_cast<uint64_t>(barrier), name, pc, true);
    Block* target = arena_of(*f->team, t.shared);
    if (target != bar.block)
        fail(EMU_MISUSE, format("%s issues %s at %s into one block that reports to the mbarrier of another",
                                who(f).c_str(), name, place(pc).c_str()), f);
    Fiber actor = make_actor(f, bar.unit, LOAD);
    if (checking()) {
        check_visible(actor, bar, pc);
        if (!value.empty()) {
        } else if (!t.is_tensor && arena_of(*f->team, t.other)) {
            check_proxy(actor, t.other, t.bytes, pc);
            check(&actor, t.other, t.bytes, Access::READ, pc);
        } else {
            touch_global(actor, t, Access::READ, pc);
        }
        check(&actor, t.shared, t.bytes, Access::WRITE, pc);
        if (target != f->block) note_visit(&actor, *target, Access::WRITE, pc);
    }
    ++f->time;
    issue(f, {t, reinterpret_cast<uintptr_t>(bar.at), actor.time, f, pc, std::move(value)});
}

static unsigned char* shared_bytes(Fiber* f, uint32_t address, uint32_t bytes, const char* name, void* pc) {
    return shared_pointer(f, address, bytes, name, pc);
}

static void check_run(Fiber* f, uint32_t shared, const void* other, uint32_t bytes, const char* name, void* pc) {
    const auto address = reinterpret_cast<uintptr_t>(other);
    if (bytes == 0 || bytes % 16 || shared % 16 || address % 16)
        fail(EMU_MEMORY, format("%s issues %s of %u bytes at %s; addresses and size must be multiples of 16 "
                                "(shared address %#x, the other %#llx)", who(f).c_str(), name, bytes,
                                place(pc).c_str(), shared, (unsigned long long)address), f);
}

// ---- groups of stores

static StoreQueue& queue_of(Fiber* f) {
    Units& units = units_of(*f->team);
    const auto [found, fresh] = units.stores.try_emplace(f->id);
    if (fresh) found->second.slot = SLOT_STORE + uint32_t(units.stores.size() - 1) % STORE_SLOTS * 2;
    return found->second;
}

static void finish_read(Store& s) {
    if (s.is_read) return;
    s.data = take(s.transfer);
    s.is_read = true;
}

static void issue_store(Fiber* f, const Transfer& t, void* pc) {
    StoreQueue& queue = queue_of(f);
    const uint32_t unit = unit_of(*f->block, queue.slot);
    Fiber reader = make_actor(f, unit, STORE), writer = make_actor(f, unit + 1, STORE);
    if (checking()) {
        check_proxy(reader, t.shared, t.bytes, pc);
        check(&reader, t.shared, t.bytes, Access::READ, pc);
        touch_global(writer, t, t.reduce < 0 ? Access::WRITE : Access::ATOMIC, pc);
    }
    ++f->time;
    queue.stores.push_back({t, queue.open_group, reader.time, writer.time, false, false, {}, pc});
    if (units_of(*f->team).early) {
        finish_read(queue.stores.back());
        give(t, queue.stores.back().data);
    }
}

static void wait_stores(Fiber* f, uint32_t pending, bool only_read) {
    Units& units = units_of(*f->team);
    StoreQueue& queue = queue_of(f);
    const uint32_t unit = unit_of(*f->block, queue.slot);
    size_t kept = 0;
    for (size_t i = 0; i < queue.stores.size(); ++i) {
        Store& s = queue.stores[i];
        const bool over = s.group + pending < queue.open_group;
        if (over && !units.early) finish_read(s);
        s.read_over |= over;
        if (over) learn_over(f, unit, s.read_time);
        if (over && !only_read) {
            if (!units.early) give(s.transfer, s.data);
            learn_over(f, unit + 1, s.write_time);
        } else {
            if (kept != i) queue.stores[kept] = std::move(s);
            ++kept;
        }
    }
    queue.stores.resize(kept);
}

// A thread that ends takes its block's shared memory from a store that still reads it.
static void at_exit(Fiber* f) {
    Team& team = *f->team;
    if (!team.units) return;
    Units& units = *team.units;
    const auto found = units.stores.find(f->id);
    if (found != units.stores.end())
        for (Store& s : found->second.stores) {
            if (checking() && !s.read_over)
                fail(EMU_RACE, format("%s ends while its bulk store issued at %s still reads shared memory; "
                                      "no cp.async.bulk.wait_group.read has ended", who(f).c_str(),
                                      place(s.pc).c_str()), f);
            if (units.early) continue;
            finish_read(s);
            give(s.transfer, s.data);
        }
    if (found != units.stores.end()) found->second.stores.clear();
    if (f->block->live != 1 || !checking()) return;
    for (const Load& l : units.loads)
        if (arena_of(team, l.transfer.shared) == f->block)
            fail(EMU_RACE, format("the block ends while the bulk load that %s issued at %s still writes %s; "
                                  "nothing waited for it", who(l.issuer).c_str(), place(l.pc).c_str(),
                                  name_shared(*f->block, l.transfer.shared).c_str()), f);
}

static const bool registered = (add_exit_hook(at_exit), true);

}  // namespace emu

using namespace emu;

static Transfer box(Fiber* f, const void* map, const int32_t* at, int rank, const char* name, void* pc) {
    enter(f);
    Transfer t;
    t.is_tensor = true;
    t.map = read_map(f, map, name, pc);
    if (t.map.rank != rank)
        fail(EMU_MISUSE, format("%s gives %s %d coordinates at %s; its map has %u dimensions",
                                who(f).c_str(), name, rank, place(pc).c_str(), t.map.rank), f);
    std::copy(at, at + rank, t.at);
    return t;
}

static void check_mode(Fiber* f, const Transfer& t, bool im2col, const char* name, void* pc) {
    if (bool(t.map.is_im2col) != im2col)
        fail(EMU_MISUSE, format("%s hands %s at %s a map of %s", who(f).c_str(), name, place(pc).c_str(),
                                im2col ? "boxes, not of im2col" : "im2col"), f);
}

extern "C" {

void emu_tensor_load(uint32_t shared, const void* map, const int32_t* at, int rank, uint32_t barrier,
                     uint32_t mask) {
    void* pc = EMU_CALLER;
    const char* name = "a tensor load";
    Fiber* f = me();
    Transfer t = box(f, map, at, rank, name, pc);
    check_mode(f, t, false, name, pc);
    t.shared = shared_bytes(f, shared, 16, name, pc);
    unsigned char* bar = shared_bytes(f, barrier, 8, name, pc);
    check_box(f, t, name, pc);
    if (!mask) return issue_load(f, t, bar, name, pc);
    if (mask >> f->team->blocks.size())
        fail(EMU_MISUSE, format("%s issues %s at %s to the blocks %#x of a cluster of %zu", who(f).c_str(),
                                name, place(pc).c_str(), mask, f->team->blocks.size()), f);
    share_layout(f, pc);
    const Block* base = arena_of(*f->team, t.shared);
    const auto offset = t.shared - base->arena, barrier_offset = bar - arena_of(*f->team, bar)->arena;
    for (Block& block : f->team->blocks)
        if (mask >> block.rank & 1) {
            t.shared = block.arena + offset;
            issue_load(f, t, block.arena + barrier_offset, name, pc);
        }
}

void emu_im2col_load(uint32_t shared, const void* map, const int32_t* at, int rank, const int32_t* offsets,
                     uint32_t barrier) {
    void* pc = EMU_CALLER;
    const char* name = "an im2col load";
    Fiber* f = me();
    Transfer t = box(f, map, at, rank, name, pc);
    check_mode(f, t, true, name, pc);
    std::copy(offsets, offsets + rank - 2, t.moved);
    t.shared = shared_bytes(f, shared, 16, name, pc);
    unsigned char* bar = shared_bytes(f, barrier, 8, name, pc);
    check_box(f, t, name, pc);
    issue_load(f, t, bar, name, pc);
}

void emu_tensor_store(const void* map, const int32_t* at, int rank, uint32_t shared, int reduce) {
    void* pc = EMU_CALLER;
    (void)registered;
    const char* name = reduce < 0 ? "a tensor store" : "a tensor reduction";
    Fiber* f = me();
    Transfer t = box(f, map, at, rank, name, pc);
    t.reduce = reduce;
    t.kind = t.map.element_kind;
    check_mode(f, t, false, name, pc);
    t.shared = shared_bytes(f, shared, 16, name, pc);
    check_box(f, t, name, pc);
    issue_store(f, t, pc);
}

void emu_tensor_prefetch(const void* map, const int32_t* at, int rank) {
    box(me(), map, at, rank, "a tensor prefetch", EMU_CALLER);
}
void emu_map_prefetch(const void* map) {
    Fiber* f = me();
    enter(f);
    read_map(f, map, "prefetch.tensormap", EMU_CALLER);
}

void emu_bulk_load(uint32_t shared, const void* global, uint32_t bytes, uint32_t barrier, uint32_t mask) {
    void* pc = EMU_CALLER;
    const char* name = "a bulk load";
    Fiber* f = me();
    enter(f);
    check_run(f, shared, global, bytes, name, pc);
    Transfer t;
    t.shared = shared_bytes(f, shared, bytes, name, pc);
    t.other = static_cast<unsigned char*>(const_cast<void*>(global));
    t.bytes = bytes;
    unsigned char* bar = shared_bytes(f, barrier, 8, name, pc);
    if (!mask) return issue_load(f, t, bar, name, pc);
    share_layout(f, pc);
    const auto offset = t.shared - arena_of(*f->team, t.shared)->arena;
    const auto barrier_offset = bar - arena_of(*f->team, bar)->arena;
    for (Block& block : f->team->blocks)
        if (mask >> block.rank & 1) {
            t.shared = block.arena + offset;
            issue_load(f, t, block.arena + barrier_offset, name, pc);
        }
}

// Shared memory of this block to that of a peer.
void emu_bulk_push(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier) {
    void* pc = EMU_CALLER;
    const char* name = "a bulk copy";
    Fiber* f = me();
    enter(f);
    Transfer t;
    t.other = shared_bytes(f, from, bytes, name, pc);
    check_run(f, to, t.other, bytes, name, pc);
    share_layout(f, pc);
    t.shared = shared_bytes(f, to, bytes, name, pc);
    t.bytes = bytes;
    issue_load(f, t, shared_bytes(f, barrier, 8, name, pc), name, pc);
}

void emu_bulk_store(void* global, uint32_t shared, uint32_t bytes, int reduce, int kind) {
    void* pc = EMU_CALLER;
    (void)registered;
    const char* name = reduce < 0 ? "a bulk store" : "a bulk reduction";
    Fiber* f = me();
    enter(f);
    check_run(f, shared, global, bytes, name, pc);
    Transfer t;
    t.shared = shared_bytes(f, shared, bytes, name, pc);
    t.other = static_cast<unsigned char*>(global);
    t.bytes = bytes;
    t.reduce = reduce;
    t.kind = kind;
    issue_store(f, t, pc);
}

void emu_store_async(uint32_t to, const void* value, uint32_t bytes, uint32_t barrier) {
    void* pc = EMU_CALLER;
    const char* name = "st.async";
    Fiber* f = me();
    enter(f);
    share_layout(f, pc);
    Transfer t;
    t.shared = shared_bytes(f, to, bytes, name, pc);
    t.bytes = bytes;
    const auto* from = static_cast<const unsigned char*>(value);
    issue_load(f, t, shared_bytes(f, barrier, 8, name, pc), name, pc, {from, from + bytes});
}

void emu_bulk_commit() {
    Fiber* f = me();
    enter(f);
    ++queue_of(f).open_group;
}
void emu_bulk_wait(uint32_t pending, int only_read) {
    Fiber* f = me();
    enter(f);
    wait_stores(f, pending, only_read != 0);
}
}
