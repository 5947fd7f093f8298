#include "cells.h"

namespace emu {

static bool is_write(uint8_t access) { return access != uint8_t(Access::READ); }

static bool conflict(uint8_t a, uint8_t b) {
    constexpr auto atomic = uint8_t(Access::ATOMIC);
    return (is_write(a) || is_write(b)) && !(a == atomic && b == atomic);
}

// Whether all that races with `old` races with `now` too.
static bool covers(uint8_t now, uint8_t old) { return now == old || now == uint8_t(Access::WRITE); }

// Whether what `old` stands for is over for f.
static bool is_ordered(const Record& old, const Fiber* f) {
    if (old.team == f->team->serial) {
        // A thread's accesses are in order; a unit's operations are not, except with themselves.
        const bool own = old.thread == f->id && (!f->role || old.time == f->time);
        return own || old.time <= f->known_at[old.thread];
    }
    const Clock* known = f->known.get();
    if (!known) return false;
    const auto foreign = known->foreign.find(old.team);
    return foreign != known->foreign.end() && old.time <= foreign->second.get()->at[old.thread];
}

const Record* enter_record(Cell& cell, const Record& now, const Fiber* f, bool keep_team) {
    Record* room = nullptr;
    Record* reader = nullptr;
    const Record* race = nullptr;
    const bool writes = is_write(now.access);
    for (Record& old : cell.record) {
        if (!old.team || (old.team != now.team && !keep_team)) {
            old.team = 0;
            if (!room) room = &old;
            continue;
        }
        if (old.thread == now.thread && old.time == now.time && old.team == now.team &&
            old.access == now.access && old.bytes == now.bytes) {
            old.pc = now.pc;
            if (!writes) return race;  // nothing new since this thread read it last
        }
        const bool same_bytes = (old.bytes & ~now.bytes) == 0;
        const bool overlaps = old.bytes & now.bytes;
        const bool ordered = is_ordered(old, f);
        if (overlaps && !ordered && conflict(old.access, now.access)) {
            race = &old;
        } else if (same_bytes && ordered && covers(now.access, old.access)) {
            // Whoever would race with `old` later races with `now` as well.
            old.team = 0;
            if (!room) room = &old;
        } else if (!is_write(old.access)) {
            // Threads of one warp mostly keep in step: one of its reads speaks for the others.
            if (!reader || old.thread / 32 == now.thread / 32) reader = &old;
        }
    }
    if (race) return race;
    if (!room) room = reader;
    if (!room && writes) room = &cell.record[3];
    if (room) *room = now;
    return nullptr;
}

void forget_writes(Cell& cell, const Record& now) {
    for (Record& old : cell.record)
        if (old.team && is_write(old.access) && (old.bytes & ~now.bytes) == 0) old.team = 0;
    for (Record& old : cell.record)
        if (!old.team) {
            old = now;
            return;
        }
}

}  // namespace emu
