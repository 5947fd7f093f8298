// Who touched which bytes last: one map of intervals for each memory, and the rule for a race.
#include "state.h"

namespace emu {

namespace {

struct Touches {
    uint64_t end;
    uint32_t write = 0;
    uint32_t read[UNITS] = {};
    uint32_t read_elsewhere = 0;  // a read by an earlier block than the last ones
};
using Intervals = std::map<uint64_t, Touches>;
Intervals intervals[SUBCORES][SPACES];  // global memory: only the first

void split(Intervals& map, uint64_t at) {
    auto next = map.lower_bound(at);
    if (next == map.begin() || (next != map.end() && next->first == at)) return;
    auto before = std::prev(next);
    if (before->second.end <= at) return;
    Touches upper = before->second;
    before->second.end = at;
    map.emplace_hint(next, at, upper);
}

// Whether `earlier` is over before `later` can start.
bool ordered(const Operation& earlier, const Operation& later) {
    if (earlier.atomic != PLAIN && earlier.atomic == later.atomic) return true;
    if (earlier.block != later.block) return false;
    return core.clock[later.unit()].at[earlier.unit()] >= earlier.sequence;
}

const char* place(Space space, uint64_t address, uint64_t& base) {
    if (space == GM) {
        const EmuTensor* tensor = tensor_at(address, 1);
        base = tensor ? reinterpret_cast<uint64_t>(tensor->base) : 0;
        return tensor ? tensor->name : "global memory";
    }
    const Buffer* buffer = buffer_at(space, address);
    base = buffer ? buffer->begin : 0;
    return buffer ? buffer->name : space_name(space);
}

void conflict(uint32_t earlier_index, uint32_t later_index, Space space, uint64_t at,
              bool first_writes, bool then_writes) {
    if (!earlier_index) return;
    const Operation& earlier = core.operations[earlier_index];
    const Operation& later = core.operations[later_index];
    if (ordered(earlier, later)) return;
    if (!(core.checks & CHECK_RACES)) {
        // Numbers are those of a default build, in which the scalar unit waits for what it depends
        // on (automatic synchronisation); the check does not rely on that.
        if (later.pipe != S || earlier.block != later.block) return;
        if (later.subcore != earlier.subcore) return;
        Clock& clock = core.clock[later.unit()];
        clock.join(earlier.needs);
        if (clock.at[earlier.unit()] < earlier.sequence)
            clock.at[earlier.unit()] = earlier.sequence;
        return;
    }
    uint64_t base;
    EmuReport& r = *core.report;
    const char* name = place(space, at, base);
    say(r.array, sizeof r.array, "%s", name);
    r.kind = RACE;
    r.line_a = later.line;
    r.line_b = earlier.line;
    const char* did = first_writes ? "writes" : "reads";
    const char* does = then_writes ? "writes" : "reads";
    unsigned long long byte = at - base;
    if (earlier.block != later.block) {
        r.thread_a = static_cast<int32_t>(later.block);
        r.thread_b = static_cast<int32_t>(earlier.block);
        say(r.text, sizeof r.text,
            "%s on core %u %s byte %llu of %s, which %s on core %u (line %d) %s; nothing orders "
            "two cores",
            later.name, later.block, does, byte, name, earlier.name, earlier.block, earlier.line,
            did);
    } else {
        r.thread_a = later.pipe;
        r.thread_b = earlier.pipe;
        const char* missing =
            earlier.subcore != later.subcore ? "no flag between the two cores orders them"
            : earlier.pipe == later.pipe     ? "no PipeBarrier is between them"
                                             : "no flag, queue or barrier orders the two units";
        say(r.text, sizeof r.text,
            "%s (unit %s) %s byte %llu of %s, which %s (unit %s, line %d) %s; %s", later.name,
            pipe_name(later.pipe), does, byte, name, earlier.name, pipe_name(earlier.pipe),
            earlier.line, did, missing);
    }
    throw Stop{};
}

}  // namespace

void shadow_touch(uint32_t op, Space space, uint64_t begin, uint64_t end, bool write) {
    Intervals& map = intervals[space == GM ? 0 : running][space];
    split(map, begin);
    split(map, end);
    int pipe = core.operations[op].unit();
    uint32_t block = core.operations[op].block;
    auto it = map.lower_bound(begin);
    if (write) {
        for (auto at = it; at != map.end() && at->first < end; ++at) {
            const Touches& t = at->second;
            conflict(t.write, op, space, at->first, true, true);
            conflict(t.read_elsewhere, op, space, at->first, false, true);
            for (uint32_t read : t.read)
                if (read != op) conflict(read, op, space, at->first, false, true);
        }
        auto last = map.lower_bound(end);
        map.erase(it, last);
        Touches fresh;
        fresh.end = end;
        fresh.write = op;
        map.emplace_hint(last, begin, fresh);
        return;
    }
    uint64_t at = begin;
    while (at < end) {
        if (it == map.end() || it->first > at) {
            Touches fresh;
            fresh.end = it == map.end() || it->first > end ? end : it->first;
            it = map.emplace_hint(it, at, fresh);
        }
        Touches& t = it->second;
        if (t.write != op) conflict(t.write, op, space, at, true, false);
        if (t.read[pipe] && core.operations[t.read[pipe]].block != block)
            t.read_elsewhere = t.read[pipe];
        t.read[pipe] = op;
        at = t.end;
        ++it;
    }
}

void shadow_forget(bool global) {
    for (auto& subcore : intervals)
        for (int space = global ? GM : UB; space < SPACES; ++space) subcore[space].clear();
}

}  // namespace emu
