// Shuffles, votes and reductions over the lanes of a warp. None of them orders memory.
#include <cstring>

#include "../core/collective.h"
#include "../core/schedule.h"
#include "../include/emulate/codes.h"

using namespace emu;

namespace {

struct Shuffle {
    unsigned char in[16], out[16];
    int bytes, mode, arg, width;
};

// The lane to read from; its own when the source lies outside its segment.
int source(int lane, const Shuffle& op) {
    const int first = lane & ~(op.width - 1), last = first + op.width - 1;
    int from = lane;
    switch (op.mode) {
        case SHUFFLE_INDEX: return first | (op.arg & (op.width - 1));
        case SHUFFLE_UP: from = lane - op.arg; return from < first ? lane : from;
        case SHUFFLE_DOWN: from = lane + op.arg; return from > last ? lane : from;
        default: from = lane ^ op.arg; return from > last || from < 0 ? lane : from;
    }
}

void run_shuffle(Group& g) {
    for (LaneSet rest = g.arrived; rest; rest &= rest - 1) {
        const int lane = first_lane(rest);
        auto* op = static_cast<Shuffle*>(g.slot[lane]);
        const int from = source(lane, *op);
        const auto* other = from < MAX_LANES ? static_cast<Shuffle*>(g.slot[from]) : nullptr;
        // A lane that did not take part has no value: all bits set is NaN, and -1.
        if (other)
            std::memcpy(op->out, other->in, 16);
        else
            std::memset(op->out, 0xff, 16);
    }
}

struct Vote {
    uint64_t value, out;
    int pred;
};

template <class F>
void for_lanes(Group& g, F f) {
    for (LaneSet rest = g.arrived; rest; rest &= rest - 1) {
        const int lane = first_lane(rest);
        f(lane, static_cast<Vote*>(g.slot[lane]));
    }
}

void run_ballot(Group& g) {
    uint64_t bits = 0;
    // of 128 lanes only 32 vote together: bits count within them
    const int first = launch.warp_size > 64 ? first_lane(g.mask) & ~31 : 0;
    for_lanes(g, [&](int lane, Vote* v) { bits |= uint64_t(v->value != 0) << (lane - first); });
    for_lanes(g, [&](int, Vote* v) { v->out = bits; });
}

void run_match_any(Group& g) {
    for_lanes(g, [&](int, Vote* v) {
        v->out = 0;
        for_lanes(g, [&](int lane, Vote* w) { v->out |= uint64_t(w->value == v->value) << lane % 64; });
    });
}

void run_match_all(Group& g) {
    bool same = true;
    const uint64_t first = static_cast<Vote*>(g.slot[first_lane(g.arrived)])->value;
    for_lanes(g, [&](int, Vote* v) { same &= v->value == first; });
    for_lanes(g, [&](int, Vote* v) { v->out = same ? uint64_t(g.arrived) : 0, v->pred = same; });
}

template <class F>
void run_reduce(Group& g) {
    bool first = true;
    uint32_t all = 0;
    for_lanes(g, [&](int, Vote* v) {
        all = first ? uint32_t(v->value) : F()(all, uint32_t(v->value));
        first = false;
    });
    for_lanes(g, [&](int, Vote* v) { v->out = all; });
}

struct Add { uint32_t operator()(uint32_t a, uint32_t b) { return a + b; } };
struct And { uint32_t operator()(uint32_t a, uint32_t b) { return a & b; } };
struct Or { uint32_t operator()(uint32_t a, uint32_t b) { return a | b; } };
struct Xor { uint32_t operator()(uint32_t a, uint32_t b) { return a ^ b; } };
struct MinS { uint32_t operator()(uint32_t a, uint32_t b) { return int32_t(a) < int32_t(b) ? a : b; } };
struct MaxS { uint32_t operator()(uint32_t a, uint32_t b) { return int32_t(a) > int32_t(b) ? a : b; } };
struct MinU { uint32_t operator()(uint32_t a, uint32_t b) { return a < b ? a : b; } };
struct MaxU { uint32_t operator()(uint32_t a, uint32_t b) { return a > b ? a : b; } };

struct VoteKind {
    const char* name;
    Run run;
};
const VoteKind votes[] = {
    {"a ballot", run_ballot},          {"a match-any", run_match_any},
    {"a match-all", run_match_all},    {"a warp sum", run_reduce<Add>},
    {"a warp and", run_reduce<And>},   {"a warp or", run_reduce<Or>},
    {"a warp xor", run_reduce<Xor>},   {"a warp minimum", run_reduce<MinS>},
    {"a warp maximum", run_reduce<MaxS>}, {"a warp minimum", run_reduce<MinU>},
    {"a warp maximum", run_reduce<MaxU>},
};

// Mask 0 stands for "the lanes that are here": the forms without a mask.
LaneSet lanes(Fiber* f, uint64_t mask) { return mask ? LaneSet(mask) : f->warp->exists; }

// Where lanes work together in groups of 32, masks and ballots are those of the thread's group.
int group_of(const Fiber* f) { return int(f->lane & ~31u); }
LaneSet lanes_of_group(const Fiber* f, uint32_t mask) { return LaneSet(mask) << group_of(f); }

Meet meet(uint64_t mask) { return mask ? Meet::MASK : Meet::PARTIAL; }

// What a fence before it released is ordered; without a fence nothing is.
void run_wave_barrier(Group& g) {
    if (!launch.races) return;
    const Warp& warp = *g.warp;
    ClockJoin all(warp.block->team->actors);
    for (LaneSet rest = g.arrived; rest; rest &= rest - 1) {
        const Fiber* f = warp.lane[first_lane(rest)];
        all.add(f->known);
        if (f->fenced_any) all.add(f->id, f->fenced_time);
    }
    const ClockRef known = all.take();
    for (LaneSet rest = g.arrived; rest; rest &= rest - 1)
        warp.lane[first_lane(rest)]->learn(known);
}

}  // namespace

extern "C" {

void emu_shuffle(void* value, int bytes, int mode, int arg, int width, uint64_t mask) {
    Shuffle op{{}, {}, bytes, mode, arg, width};
    std::memcpy(op.in, value, size_t(bytes));
    collective("a shuffle", lanes(me(), mask), &op, run_shuffle, EMU_CALLER, meet(mask));
    std::memcpy(value, op.out, size_t(bytes));
}

void emu_shuffle_of_32(void* value, int bytes, int mode, int arg, int width, uint32_t mask) {
    Fiber* f = me();
    if (width > 32 || (mode == SHUFFLE_XOR && (arg < 0 || arg >= 32)))
        fail(EMU_MISUSE,
             format("%s shuffles at %s over more than 32 lanes, which nobody documents for this chip",
                    who(f).c_str(), place(EMU_CALLER).c_str()),
             f);
    Shuffle op{{}, {}, bytes, mode, arg, width};
    std::memcpy(op.in, value, size_t(bytes));
    collective("a shuffle", lanes_of_group(f, mask), &op, run_shuffle, EMU_CALLER, Meet::MASK);
    std::memcpy(value, op.out, size_t(bytes));
}

uint32_t emu_vote_of_32(int kind, uint32_t mask, uint64_t value, int* pred) {
    Fiber* f = me();
    Vote op{value, 0, 0};
    collective(votes[kind].name, lanes_of_group(f, mask), &op, votes[kind].run, EMU_CALLER, Meet::MASK);
    if (pred) *pred = op.pred;
    return uint32_t(op.out);
}

uint32_t emu_active_mask_of_32() {
    const Fiber* f = me();
    return uint32_t(f->warp->alive >> group_of(f));
}

uint64_t emu_vote(int kind, uint64_t mask, uint64_t value, int* pred) {
    Vote op{value, 0, 0};
    collective(votes[kind].name, lanes(me(), mask), &op, votes[kind].run, EMU_CALLER, meet(mask));
    if (pred) *pred = op.pred;
    return op.out;
}

void emu_warp_barrier(uint64_t mask) {
    collective("__syncwarp", mask, nullptr, order_lanes, EMU_CALLER);
}

void emu_wave_barrier() {
    collective("a wave barrier", me()->warp->exists, nullptr, run_wave_barrier, EMU_CALLER, Meet::PARTIAL);
}

uint32_t emu_active_mask() { return uint32_t(me()->warp->alive); }

uint32_t emu_barrier(uint32_t id, uint32_t expected, int predicate, const char* name) {
    return barrier_sync(id, expected, predicate != 0, name, EMU_CALLER);
}
void emu_barrier_arrive(uint32_t id, uint32_t expected) { barrier_arrive(id, expected, EMU_CALLER); }
}
