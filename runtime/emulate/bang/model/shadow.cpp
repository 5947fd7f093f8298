// Who touched which bytes last: a map of intervals, and the rule for a race.
#include "state.h"

namespace emu {

namespace {

struct Touches {
    const char* end;
    Touch write{};
    Touch read[PIPES] = {};
};
using Intervals = std::map<const char*, Touches>;
Intervals on_chip, off_chip_bytes;

void split(Intervals& map, const char* at) {
    auto next = map.lower_bound(at);
    if (next == map.begin() || (next != map.end() && next->first == at)) return;
    auto before = std::prev(next);
    if (before->second.end <= at) return;
    Touches upper = before->second;
    before->second.end = at;
    map.emplace_hint(next, at, upper);
}

// Whether `earlier` is over before what needs `needs` can start.
bool ordered(const Touch& earlier, const Touch& later, const Clock& needs) {
    if (!earlier.name) return true;
    if (earlier.adds && later.adds) return true;
    if (earlier.task != later.task) return false;
    return needs.at[earlier.pipe] >= earlier.sequence;
}

[[noreturn]] void race(const Touch& earlier, const Touch& later, const char* at, bool wrote,
                       bool writes) {
    const char* held = holder(at);
    say(core.report->array, sizeof core.report->array, "%s", held);
    core.report->thread_b = static_cast<int32_t>(earlier.task);
    core.report->line_b = earlier.line;
    const char* did = wrote ? "wrote" : "reads";
    char place[40];  // of the earlier one
    if (earlier.own)
        snprintf(place, sizeof place, "<pc:%x>", module_offset(earlier.own));
    else
        snprintf(place, sizeof place, "line %d", earlier.line);
    if (earlier.task != later.task)
        stop(RACE, later.line, "%s %s bytes of %s that %s of %s %s in task %u", later.name,
             writes ? "writes" : "reads", held, earlier.name, place, did, earlier.task);
    stop(RACE, later.line,
         "%s (%s) %s bytes of %s that %s of %s (%s) %s, and no synchronisation lies between",
         later.name, pipe_name(later.pipe), writes ? "writes" : "reads", held, earlier.name, place,
         pipe_name(earlier.pipe), did);
}

// Whether two touches of global memory differ in nothing that is asked later: those of one task are
// in order.
bool alike(const Touch& a, const Touch& b) {
    return a.name == b.name && a.line == b.line && a.task == b.task && a.adds == b.adds &&
           a.own == b.own;
}

bool alike(const Touches& a, const Touches& b) {
    for (int p = 0; p < PIPES; ++p)
        if (!alike(a.read[p], b.read[p])) return false;
    return alike(a.write, b.write);
}

// Elements that the core touches one by one become one interval again.
void join_around(Intervals& map, const char* at) {
    auto next = map.find(at);
    if (next == map.end()) return;
    if (next != map.begin()) {
        const auto before = std::prev(next);
        if (before->second.end == at && alike(before->second, next->second)) {
            before->second.end = next->second.end;
            map.erase(next);
            next = before;
        }
    }
    const auto after = std::next(next);
    if (after == map.end() || after->first != next->second.end) return;
    if (!alike(next->second, after->second)) return;
    next->second.end = after->second.end;
    map.erase(after);
}

}  // namespace

void shadow_touch(const Touch& touch, const Clock& needs, Space space, const void* begin,
                  uint64_t bytes, bool write) {
    if (!(core.checks & CHECK_RACES)) return;
    Intervals& map = space == GDRAM ? off_chip_bytes : on_chip;
    const char* at = static_cast<const char*>(begin);
    const char* end = at + bytes;
    split(map, at);
    split(map, end);
    auto next = map.lower_bound(at);
    while (at < end) {
        if (next == map.end() || next->first > at) {  // bytes that nobody touched
            const char* until = next == map.end() || next->first > end ? end : next->first;
            next = map.emplace_hint(next, at, Touches{until});
        }
        Touches& t = next->second;
        const bool mine = t.write.name && t.write.pipe == touch.pipe &&
                          t.write.sequence == touch.sequence && t.write.task == touch.task;
        if (!mine && !ordered(t.write, touch, needs)) race(t.write, touch, at, true, write);
        if (write) {
            for (const Touch& read : t.read) {
                const bool own = read.name && read.pipe == touch.pipe &&
                                 read.sequence == touch.sequence && read.task == touch.task;
                if (!own && !ordered(read, touch, needs)) race(read, touch, at, false, true);
            }
            t.write = touch;
            for (Touch& read : t.read) read = Touch{};
        } else {
            t.read[touch.pipe] = touch;
        }
        at = t.end;
        ++next;
    }
    if (touch.own && space == GDRAM) join_around(map, static_cast<const char*>(begin));
}

void shadow_forget(bool global) {
    on_chip.clear();
    if (global) off_chip_bytes.clear();
}

}  // namespace emu
