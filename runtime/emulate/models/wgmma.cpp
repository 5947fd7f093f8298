// wgmma: each lane hands in its part of an operation and goes on; the last of the 128 issues it. The
// product is made, and registers get their values, when a wait asks for them.
#include "wgmma.h"

#include <algorithm>
#include <cstring>

#include "matrix.h"

namespace emu {

struct Operation {
    WgmmaForm form;
    uint64_t a = 0, b = 0;  // descriptors
    bool accumulate = false, done = false;
    std::shared_ptr<Accumulators> acc;
    uint32_t lanes = 0, time = 0;
    std::vector<unsigned char> registers_a;  // 64 x k elements
    void* pc = nullptr;
};

struct Warpgroup {
    Block* block = nullptr;
    uint32_t first = 0, unit = 0;
    std::deque<Operation> open;  // numbers from `closed` on
    uint32_t closed = 0;
    std::vector<uint32_t> ends;  // by group: how many operations came before its end
    uint32_t issued[WARPGROUP] = {}, committed[WARPGROUP] = {}, waited[WARPGROUP] = {};
    bool fenced[WARPGROUP] = {}, waited_since[WARPGROUP] = {};
    std::vector<std::shared_ptr<Accumulators>> known;
    std::vector<Fiber*> waiting;
    ClockRef last_in, last_out;
    uint32_t last_time = 0;
    bool has_last = false;

    uint32_t total() const { return closed + uint32_t(open.size()); }
    Operation& operation(uint32_t number) { return open[number - closed]; }
};

static Warpgroup& warpgroup_of(Fiber* f, const char* name, void* pc) {
    enter(f);
    Block& block = *f->block;
    const uint32_t number = f->linear / WARPGROUP;
    if ((number + 1) * WARPGROUP > block.threads)
        fail(EMU_MISUSE, format("%s calls %s at %s; the last %u threads of its block are no whole warpgroup",
                                who(f).c_str(), name, place(pc).c_str(), block.threads % WARPGROUP), f);
    auto& slot = units_of(*f->team).warpgroups[block.rank * WARPGROUP_SLOTS + number];
    if (!slot) {
        slot = std::make_shared<Warpgroup>();
        slot->block = &block;
        slot->first = number * WARPGROUP;
        slot->unit = unit_of(block, SLOT_WARPGROUP + number);
    }
    return *slot;
}

// ---- accesses by the threads

static void watch_all(Fiber* f, const Warpgroup& group, uint32_t lane) {
    uintptr_t lo = ~uintptr_t(0), hi = 0;
    for (const auto& acc : group.known)
        for (void* p : acc->registers[lane]) {
            const auto at = reinterpret_cast<uintptr_t>(p);
            lo = std::min(lo, at);
            hi = std::max(hi, at + (acc->registers[lane].size() == 1 ? acc->bytes() : 4));
        }
    f->watch_lo = lo;
    f->watch_bytes = hi > lo ? hi - lo : 0;
}

void watch(Fiber* f, uintptr_t at, Access access, void* pc) {
    Warpgroup& group = warpgroup_of(f, "wgmma", pc);
    const uint32_t lane = f->linear - group.first;
    for (const auto& acc : group.known) {
        if (!covers(*acc, lane, at)) continue;
        if (acc->in_flight[lane]) {
            const Operation* last = nullptr;
            for (const Operation& op : group.open)
                if (op.acc == acc && op.acc->registers[lane].size()) last = &op;
            fail(EMU_RACE,
                 format("%s %s at %s an accumulator of the wgmma issued at %s; no wgmma.wait_group for it "
                        "has ended", who(f).c_str(), access == Access::READ ? "reads" : "writes",
                        place(pc).c_str(), last ? place(last->pc).c_str() : "an unknown line"),
                 f, "accumulators");
        }
        if (!acc->touched[lane]) {
            acc->touched[lane] = true;
            acc->touched_pc = pc;
        }
    }
}

// ---- issue

static bool same_registers(const std::vector<void*>& a, void* const* d, int count) {
    return a.size() == size_t(count) && std::equal(a.begin(), a.end(), d);
}

static std::shared_ptr<Accumulators> find_accumulators(Warpgroup& group, const WgmmaForm& form, uint32_t lane,
                                                       void* const* d, int count) {
    for (const auto& acc : group.known)
        if (acc->n == form.n && acc->type == form.type_d && same_registers(acc->registers[lane], d, count))
            return acc;
    // An idle one that no lane has in flight may go when there are many.
    if (group.known.size() >= 16)
        for (size_t i = 0; i < group.known.size(); ++i)
            if (std::none_of(group.known[i]->in_flight, group.known[i]->in_flight + WARPGROUP,
                             [](bool b) { return b; })) {
                group.known.erase(group.known.begin() + long(i));
                break;
            }
    auto acc = std::make_shared<Accumulators>();
    acc->n = form.n;
    acc->type = form.type_d;
    if (form.type_d == TYPE_S32)
        acc->ints.resize(size_t(64 * form.n));
    else
        acc->floats.resize(size_t(64 * form.n));
    group.known.push_back(acc);
    return acc;
}

// The lane's registers of an operation; others that shared them are forgotten.
static void claim(Fiber* f, Warpgroup& group, const std::shared_ptr<Accumulators>& acc, uint32_t lane,
                  void* const* d, int count, void* pc) {
    for (const auto& other : group.known) {
        if (other == acc) continue;
        bool overlaps = false;
        for (int i = 0; i < count; ++i) overlaps |= covers(*other, lane, reinterpret_cast<uintptr_t>(d[i]));
        if (!overlaps) continue;
        if (other->in_flight[lane])
            fail(EMU_RACE, format("%s issues wgmma at %s on accumulators that one of another shape has in "
                                  "flight", who(f).c_str(), place(pc).c_str()), f, "accumulators");
        other->registers[lane].clear();
    }
    acc->registers[lane].assign(d, d + count);
    watch_all(f, group, lane);
}

static void check_fence(Fiber* f, const Warpgroup& group, const Accumulators& acc, uint32_t lane,
                        bool accumulate, bool fresh, void* pc) {
    std::string why;
    if (!group.fenced[lane])
        why = "no wgmma.fence came before its first wgmma";
    else if (acc.touched[lane] && !fresh)
        why = "no wgmma.fence came since the access to its accumulators at " + place(acc.touched_pc);
    else if (fresh && accumulate && group.waited_since[lane])
        why = "no wgmma.fence came since its last wgmma.wait_group, and these accumulators are new";
    if (!why.empty())
        fail(EMU_RACE, format("%s issues wgmma at %s: %s", who(f).c_str(), place(pc).c_str(), why.c_str()), f,
             "accumulators");
}

// What all four warps know: a warp knows what any of its lanes does.
static ClockRef common_knowledge(const Warpgroup& group) {
    Team& team = *group.block->team;
    ClockRef warps[4];
    for (uint32_t w = 0; w < 4; ++w) {
        ClockJoin all(team.actors);
        for (uint32_t l = 0; l < 32; ++l) {
            const Fiber& f = group.block->fibers[group.first + 32 * w + l];
            all.add(f.known);
            all.add(f.id, f.time);
        }
        warps[w] = all.take();
    }
    auto* least = new Clock{0, warps[0].get()->at, warps[0].get()->foreign};
    for (int w = 1; w < 4; ++w)
        for (size_t i = 0; i < least->at.size(); ++i) least->at[i] = std::min(least->at[i], warps[w].get()->at[i]);
    return ClockRef(least);
}

template <class F>
static void for_chunks(const Operand& o, F f) {
    const int per = 16 / o.element_bytes;
    if (o.mn_major)
        for (int k = 0; k < o.k; ++k)
            for (int mn = 0; mn < o.rows; mn += per) f(operand_byte(o, mn, k), mn, k);
    else
        for (int mn = 0; mn < o.rows; ++mn)
            for (int k = 0; k < o.k; k += per) f(operand_byte(o, mn, k), mn, k);
}

static Operand operand(const Warpgroup& group, const Operation& op, bool is_a) {
    const int bytes = bits_of(is_a ? op.form.type_a : op.form.type_b) / 8;
    return {group.block, is_a ? op.a : op.b, is_a ? 64 : op.form.n, op.form.k, bytes,
            (is_a ? op.form.major_a : op.form.major_b) != 0};
}

static void check_operand(Fiber& actor, const Operand& o, void* pc) {
    for_chunks(o, [&](uint32_t byte, int, int) {
        unsigned char* at = o.block->arena + byte;
        check_proxy(actor, at, 16, pc);
        check(&actor, at, 16, Access::READ, pc);
    });
}

static void check_descriptor(const Fiber* f, uint64_t d, const char* which, void* pc) {
    if (d >> 49 & 7)
        fail(EMU_UNSUPPORTED, format("%s issues wgmma at %s with a base offset in the descriptor of %s; align "
                                     "tiles to 1024 bytes", who(f).c_str(), place(pc).c_str(), which), f);
}

static void perform(Warpgroup& group, Operation& op);

static void issue_all(Warpgroup& group, Operation& op) {
    Fiber* first = &group.block->fibers[group.first];
    Fiber actor = make_actor(first, group.unit, "the wgmma of ");
    op.time = actor.time;
    if (!op.form.a_in_registers) check_descriptor(first, op.a, "A", op.pc);
    check_descriptor(first, op.b, "B", op.pc);
    if (checking()) {
        if (launch.races) actor.learn(common_knowledge(group));
        if (!op.form.a_in_registers) check_operand(actor, operand(group, op, true), op.pc);
        check_operand(actor, operand(group, op, false), op.pc);
    }
    if (units_of(*group.block->team).early) perform(group, op);
    for (Fiber* f : group.waiting) make_ready(f);
    group.waiting.clear();
}

// ---- the product

static void put_chunk(int type, const unsigned char* from, float* to, int step) {
    const int count = 128 / bits_of(type);
    for (int i = 0; i < count; ++i) to[i * step] = element(type, from, i);
}

template <class T>
static std::vector<T> gather(const Operand& o, int type, int mn_step, int k_step, int sign) {
    std::vector<float> tile(size_t(o.rows * o.k));
    for_chunks(o, [&](uint32_t byte, int mn, int k) {
        put_chunk(type, o.block->arena + byte, &tile[size_t(mn * mn_step + k * k_step)],
                  o.mn_major ? mn_step : k_step);
    });
    if (sign < 0)
        for (float& x : tile) x = -x;
    return std::vector<T>(tile.begin(), tile.end());
}

template <class T>
static std::vector<T> gather_a(const Warpgroup& group, const Operation& op) {
    const int k = op.form.k;
    if (!op.form.a_in_registers) return gather<T>(operand(group, op, true), op.form.type_a, k, 1, op.form.scale_a);
    std::vector<T> tile(size_t(64 * k));
    for (int i = 0; i < 64 * k; ++i)
        tile[size_t(i)] = T(element(op.form.type_a, op.registers_a.data(), i)) * T(op.form.scale_a);
    return tile;
}

static void perform(Warpgroup& group, Operation& op) {
    if (op.done) return;
    op.done = true;
    Accumulators& acc = *op.acc;
    const WgmmaForm& form = op.form;
    if (acc.type == TYPE_S32) {
        if (!op.accumulate) std::fill(acc.ints.begin(), acc.ints.end(), 0);
        const auto a = gather_a<int32_t>(group, op);
        const auto b = gather<int32_t>(operand(group, op, false), form.type_b, 1, form.n, 1);
        return multiply_ints(acc.ints.data(), a.data(), b.data(), form.n, form.k, form.saturate);
    }
    if (!op.accumulate) std::fill(acc.floats.begin(), acc.floats.end(), 0.f);
    const auto a = gather_a<float>(group, op);
    const auto b = gather<float>(operand(group, op, false), form.type_b, 1, form.n, form.scale_b);
    if (bits_of(form.type_a) == 8)
        multiply_float8(acc.floats.data(), a.data(), b.data(), form.n, form.k);
    else
        multiply_floats(acc.floats.data(), a.data(), b.data(), form.n, form.k);
    if (acc.type == TYPE_F16)
        for (float& x : acc.floats) x = half_to_float(float_to_half(x));
}

// A from registers: where register r of a lane goes in the 64 x k tile.
static void put_a(Operation& op, uint32_t lane, const uint32_t* a) {
    const int bytes = bits_of(op.form.type_a) / 8, per = 4 / bytes, k = op.form.k;
    const int row = int(16 * (lane / 32) + lane % 32 / 4), q = int(lane % 4);
    op.registers_a.resize(size_t(64 * k * bytes));
    for (int r = 0; r < 4; ++r) {
        const int at = (row + 8 * (r & 1)) * k + per * q + 4 * per * (r >> 1);
        std::memcpy(&op.registers_a[size_t(at * bytes)], a + r, 4);
    }
}

static void open_operation(Warpgroup& group, const WgmmaForm& form, uint64_t a, uint64_t b, bool accumulate,
                           uint32_t lane, void* const* d, int count, void* pc) {
    Operation op;
    op.form = form;
    op.a = a;
    op.b = b;
    op.accumulate = accumulate;
    op.pc = pc;
    op.acc = find_accumulators(group, form, lane, d, count);
    group.open.push_back(std::move(op));
}

static void check_same(Fiber* f, const Operation& op, const WgmmaForm& form, uint64_t a, uint64_t b,
                       bool accumulate, void* pc) {
    if (op.form == form && (form.a_in_registers || op.a == a) && op.b == b && op.accumulate == accumulate) return;
    fail(EMU_MISUSE, format("the threads of one warpgroup issue different wgmmas: %s at %s, others at %s (%s)",
                            who(f).c_str(), place(pc).c_str(), place(op.pc).c_str(),
                            op.form == form ? "with other descriptors or another scale-d" : "of another form"), f);
}

// ---- waits

static std::string explain(const Fiber*) { return "wgmma.wait_group for the other warps of its warpgroup"; }

static void learn(Fiber* f, Warpgroup& group, uint32_t time) {
    if (!launch.races) return;
    if (!group.has_last || group.last_in.get() != f->known.get() || group.last_time != time) {
        ClockJoin known(f->team->actors);
        known.add(f->known);
        known.add(f->team->threads + group.unit, time);
        group.last_in = f->known;
        group.last_time = time;
        group.last_out = known.take();
        group.has_last = true;
    }
    f->learn(group.last_out);
}

static void close_operations(Warpgroup& group) {
    uint32_t least = ~0u;
    for (uint32_t w : group.waited) least = std::min(least, w);
    while (!group.open.empty() && group.closed < least) {
        group.open.pop_front();
        ++group.closed;
    }
}

static void wait_groups(Fiber* f, Warpgroup& group, uint32_t pending, void* pc) {
    const uint32_t lane = f->linear - group.first;
    group.waited_since[lane] = true;
    if (group.committed[lane] <= pending) return;
    const uint32_t need = group.ends[group.committed[lane] - pending - 1];
    if (need <= group.waited[lane]) return;
    while (group.operation(need - 1).lanes < WARPGROUP) {
        group.waiting.push_back(f);
        f->explain = explain;
        wait("wgmma.wait_group", pc);
    }
    for (uint32_t number = group.closed; number < need; ++number) perform(group, group.operation(number));
    for (const auto& acc : group.known) {
        if (!acc->in_flight[lane] || acc->last[lane] >= need) continue;
        write_registers(*acc, lane);
        acc->in_flight[lane] = acc->touched[lane] = false;
    }
    learn(f, group, group.operation(need - 1).time);
    group.waited[lane] = need;
    close_operations(group);
}

static void at_exit(Fiber* f) {
    Units* units = f->team->units.get();
    const uint32_t number = f->linear / WARPGROUP;
    if (!units || number >= WARPGROUP_SLOTS) return;
    const auto& group = units->warpgroups[f->block->rank * WARPGROUP_SLOTS + number];
    if (!group) return;
    const uint32_t lane = f->linear - group->first;
    if (group->issued[lane] > group->waited[lane])
        fail(EMU_RACE, format("%s ends while the wgmma that it issued at %s is in flight", who(f).c_str(),
                              place(group->operation(group->issued[lane] - 1).pc).c_str()), f, "accumulators");
}

static const bool registered = (add_exit_hook(at_exit), true);

}  // namespace emu

using namespace emu;

extern "C" {

// d: where the accumulators are, in order; `count` of them, 1 if they lie side by side.
void emu_wgmma(const int* form, uint64_t a, const uint32_t* a_registers, uint64_t b, int accumulate,
               void* const* d, int count) {
    void* pc = EMU_CALLER;
    (void)registered;
    Fiber* f = me();
    Warpgroup& group = warpgroup_of(f, "wgmma", pc);
    const uint32_t lane = f->linear - group.first;
    const WgmmaForm wanted{form[0], form[1], form[2], form[3], form[4], form[5] != 0, form[6], form[7],
                           form[8], form[9], a_registers != nullptr};
    const uint32_t number = group.issued[lane];
    if (number == group.total()) open_operation(group, wanted, a, b, accumulate != 0, lane, d, count, pc);
    Operation& op = group.operation(number);
    check_same(f, op, wanted, a, b, accumulate != 0, pc);
    Accumulators& acc = *op.acc;
    const bool fresh = !same_registers(acc.registers[lane], d, count);
    if (fresh && acc.in_flight[lane])
        fail(EMU_MISUSE, format("%s issues wgmma at %s on other accumulators than its warpgroup", who(f).c_str(),
                                place(pc).c_str()), f, "accumulators");
    if (!acc.in_flight[lane] || a_registers) check_fence(f, group, acc, lane, accumulate, fresh, pc);
    if (fresh) claim(f, group, op.acc, lane, d, count, pc);
    if (!acc.in_flight[lane]) {
        if (accumulate) read_registers(acc, lane);
        poison(acc, lane);
        acc.in_flight[lane] = true;
    }
    acc.touched[lane] = false;
    acc.last[lane] = number;
    if (a_registers) put_a(op, lane, a_registers);
    ++group.issued[lane];
    if (++op.lanes == WARPGROUP) issue_all(group, op);
}

void emu_wgmma_fence() {
    Fiber* f = me();
    Warpgroup& group = warpgroup_of(f, "wgmma.fence", EMU_CALLER);
    const uint32_t lane = f->linear - group.first;
    group.fenced[lane] = true;
    group.waited_since[lane] = false;
    for (const auto& acc : group.known) acc->touched[lane] = false;
}

void emu_wgmma_commit() {
    void* pc = EMU_CALLER;
    Fiber* f = me();
    Warpgroup& group = warpgroup_of(f, "wgmma.commit_group", pc);
    const uint32_t lane = f->linear - group.first, end = group.issued[lane];
    if (group.committed[lane] == group.ends.size()) group.ends.push_back(end);
    if (group.ends[group.committed[lane]++] != end)
        fail(EMU_MISUSE, format("%s closes a group of wgmmas at %s elsewhere than the rest of its warpgroup",
                                who(f).c_str(), place(pc).c_str()), f);
}

void emu_wgmma_wait(uint32_t pending) {
    void* pc = EMU_CALLER;
    Fiber* f = me();
    wait_groups(f, warpgroup_of(f, "wgmma.wait_group", pc), pending, pc);
}
}
