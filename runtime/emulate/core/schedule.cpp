#include "schedule.h"

#include "collective.h"
#include "entry.h"
#include "fiber.h"
#include "shadow.h"
#include "stopped.h"

namespace emu {

static std::vector<IdleHook>& idle_hooks() {
    static std::vector<IdleHook> hooks;
    return hooks;
}
static std::vector<FiberHook>& exit_hooks() {
    static std::vector<FiberHook> hooks;
    return hooks;
}
static std::vector<TeamHook>& start_hooks() {
    static std::vector<TeamHook> hooks;
    return hooks;
}
void add_idle_hook(IdleHook hook) { idle_hooks().push_back(hook); }
void add_exit_hook(FiberHook hook, bool first) {
    exit_hooks().insert(first ? exit_hooks().begin() : exit_hooks().end(), hook);
}
void add_start_hook(TeamHook hook) { start_hooks().push_back(hook); }

void make_ready(Fiber* f) {
    Worker& w = *f->team->worker;
    f->state = State::READY;
    w.ring[w.tail] = f;
    if (++w.tail == w.ring.size()) w.tail = 0;
}

static Fiber* next_ready(Worker& w) {
    if (w.head == w.tail) return nullptr;
    Fiber* f = w.ring[w.head];
    if (++w.head == w.ring.size()) w.head = 0;
    f->state = State::RUNNING;
    return f;
}

// Continues with the next ready fiber, or with the scheduler when there is none.
static void switch_away(Fiber* self) {
    Worker& w = *self->team->worker;
    Fiber* next = next_ready(w);
    if (next != self) emu_swap(&self->sp, next ? next->sp : w.sp);
    while (self->asked) {  // where it stands, with its callers: only its own stack tells
        *self->asked = place(self->where);
        self->asked = nullptr;
        emu_swap(&self->sp, w.sp);
    }
}

// The place where a fiber waits, as it sees it itself.
static std::string place_of(Fiber& f) {
    std::string found;
    f.asked = &found;
    emu_swap(&f.team->worker->sp, f.sp);
    return found;
}

void wait(const char* doing, void* where) {
    Fiber* self = me();
    self->state = State::WAITING;
    self->doing = doing;
    self->where = where;
    self->polls = 0;
    switch_away(self);
    self->explain = nullptr;
}

void yield(const char* doing, void* where) {
    Fiber* self = me();
    self->doing = doing;
    self->where = where;
    make_ready(self);
    switch_away(self);
}

void enter(Fiber* f) {
    if (f->suspect.bytes) settle(f);
    if (__builtin_expect(f->team->worker->expired, false)) {
        f->team->worker->expired = false;
        fail(EMU_DEADLOCK,
             format("%s does not come to an end: its block has used %.0f s of processor time%s%s",
                    who(f).c_str(), launch.seconds, f->where ? "; it was last seen at " : "",
                    f->where ? place(f->where).c_str() : ""),
             f);
    }
}

// ---- barriers

// A barrier also passes on what its threads have fenced: one of them may release it for all.
static void share_fences(Block& block, Barrier& bar) {
    ClockJoin all(block.team->actors);
    bool any = false;
    for (const Fiber* f : bar.waiting) {
        if (!f->fenced_any) continue;
        any = true;
        all.add(f->fenced_known);
        all.add(f->id, f->fenced_time);
    }
    if (!any) return;
    const ClockRef fenced = all.take();
    for (Fiber* f : bar.waiting) {
        f->fenced_any = true;
        f->fenced_known = fenced;
    }
}

static void complete(Block& block, Barrier& bar, Fiber* self) {
    ClockRef known;
    if (launch.races) {
        ClockJoin all(block.team->actors);
        for (const Fiber* f : bar.waiting) {
            all.add(f->known);
            all.add(f->id, f->time);
        }
        for (const auto& arrival : bar.arrivals) {
            all.add(arrival.known);
            all.add(arrival.id, arrival.time);
        }
        known = all.take();
    }
    if (launch.races) share_fences(block, bar);
    for (Fiber* f : bar.waiting) {
        f->result = bar.count;
        if (launch.races) {
            f->learn(known);
            ++f->time;
        }
        // The last thread goes behind the others, else thread order hides races.
        if (f != self) make_ready(f);
    }
    bar.waiting.clear();
    bar.arrivals.clear();
    bar.expected = bar.arrived = bar.count = 0;
    if (self) {
        make_ready(self);
        switch_away(self);
    }
}

static Barrier& arrive(Fiber* f, uint32_t id, uint32_t expected, const char* name, void* pc) {
    enter(f);
    if (id >= f->block->barriers.size())
        fail(EMU_MISUSE, format("%s uses barrier %u at %s; there are 16", who(f).c_str(), id,
                                place(pc).c_str()), f);
    if (expected > f->block->threads)
        fail(EMU_MISUSE, format("%s waits for %u threads in %s at %s; the block has %u",
                                who(f).c_str(), expected, name, place(pc).c_str(),
                                f->block->threads), f);
    Barrier& bar = f->block->barriers[id];
    if (bar.arrived && bar.expected != expected)
        fail(EMU_MISUSE, format("%s comes to barrier %u at %s for %u threads; others wait there "
                                "for %u", who(f).c_str(), id, place(pc).c_str(), expected,
                                bar.expected), f);
    bar.expected = expected;
    ++bar.arrived;
    return bar;
}

static bool is_complete(const Block& block, const Barrier& bar) {
    return bar.arrived && bar.arrived >= (bar.expected ? bar.expected : block.live);
}

uint32_t barrier_sync(uint32_t id, uint32_t expected, bool predicate, const char* name, void* pc) {
    Fiber* f = me();
    Barrier& bar = arrive(f, id, expected, name, pc);
    bar.count += predicate;
    bar.waiting.push_back(f);
    f->where = pc;
    if (is_complete(*f->block, bar))
        complete(*f->block, bar, f);
    else
        wait(name, pc);
    return f->result;
}

void barrier_arrive(uint32_t id, uint32_t expected, void* pc) {
    Fiber* f = me();
    Barrier& bar = arrive(f, id, expected, "bar.arrive", pc);
    if (launch.races) {
        bar.arrivals.push_back({f->id, f->time, f->known});
        ++f->time;
    }
    if (is_complete(*f->block, bar)) complete(*f->block, bar, nullptr);
}

// ---- the life of a fiber and of a team

static void body() {
    launch.entry->invoke(launch.args);
    Fiber* f = me();
    enter(f);
    for (FiberHook hook : exit_hooks()) hook(f);
    f->state = State::DONE;
    --f->team->live;
    --f->block->live;
    f->warp->alive &= ~one_lane(f->lane);
    lane_left(*f->warp);
    for (Barrier& bar : f->block->barriers) {
        // What an ended thread wrote is visible to those who pass the barrier that it skipped.
        if (launch.races && bar.arrived && !bar.expected)
            bar.arrivals.push_back({f->id, f->time, f->known});
        if (f->block->live && !bar.expected && is_complete(*f->block, bar))
            complete(*f->block, bar, nullptr);
    }
    switch_away(f);
    __builtin_unreachable();
}

// Names who waits where, one line for each place.
[[noreturn]] static void report_deadlock(Team& team) {
    std::string text = "no thread can go on:";
    const Fiber *first = nullptr, *second = nullptr;
    struct Place {
        Fiber* first;
        std::string doing;
        int count;
    };
    std::vector<Place> places;
    for (uint32_t i = 0; i < team.threads; ++i) {
        Fiber& f = team.fibers[i];
        if (f.state == State::DONE) continue;
        const std::string doing = f.explain ? f.explain(&f) : f.doing;
        bool seen = false;
        for (Place& place : places)
            if (place.first->where == f.where && place.doing == doing) seen = true, ++place.count;
        if (seen) continue;
        places.push_back({&f, doing, 1});
        if (!first) first = &f;
        else if (!second) second = &f;
    }
    for (const Place& p : places)
        text += format(" %s%s waits at %s in %s;", who(p.first).c_str(),
                       p.count > 1 ? format(" (and %d more)", p.count - 1).c_str() : "",
                       place_of(*p.first).c_str(), p.doing.c_str());
    const uint32_t done = team.threads - team.live;
    text += done ? format(" %u of %u threads have ended", done, team.threads)
                 : format(" none of the %u threads has ended", team.threads);
    fail(EMU_DEADLOCK, text, first, "", second);
}

static bool wake_someone(Team& team) {
    for (IdleHook hook : idle_hooks())
        if (hook(team)) return true;
    return run_partial(team);
}

bool run_team(Worker& worker) {
    Team& team = worker.team;
    worker.head = worker.tail = 0;
    for (TeamHook hook : start_hooks()) hook(team);
    for (uint32_t i = 0; i < team.threads; ++i) {
        prepare(&team.fibers[i], body);
        make_ready(&team.fibers[i]);
    }
    while (true) {
        if (Fiber* f = next_ready(worker)) emu_swap(&worker.sp, f->sp);
        if (worker.failed) return false;
        if (worker.head != worker.tail) continue;
        if (!team.live) {
            if (!worker.unwritten.kind) return true;
            worker.report = worker.unwritten;
            worker.failed = true;
            return false;
        }
        try {
            if (!wake_someone(team)) report_deadlock(team);
        } catch (const Stopped&) {
            return false;
        }
    }
}

}  // namespace emu
