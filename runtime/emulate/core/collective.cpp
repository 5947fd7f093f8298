#include "collective.h"

#include "schedule.h"

namespace emu {

static void complete(Group& group, const Fiber* self) {
    group.run(group);
    const LaneSet arrived = group.arrived;
    group.name = nullptr;
    for (LaneSet rest = arrived; rest; rest &= rest - 1) {
        Fiber* f = group.warp->lane[first_lane(rest)];
        if (f != self) make_ready(f);
    }
}

static bool is_complete(const Group& group) {
    const LaneSet awaited = group.how == Meet::WHOLE ? group.mask : group.mask & group.warp->alive;
    return (awaited & ~group.arrived) == 0;
}

static Group& join(Warp& warp, const char* name, LaneSet mask, const Fiber* f, void* pc) {
    Group* free = nullptr;
    for (Group& group : warp.group) {
        if (!group.name) {
            if (!free) free = &group;
            continue;
        }
        if (group.mask == mask && group.name == name) return group;
        if (group.mask & mask & warp.alive) {
            const Fiber* other = warp.lane[first_lane(group.arrived)];
            fail(EMU_MISUSE,
                 format("lanes of one warp take different ways: %s is in %s at %s with mask %s, "
                        "%s is in %s at %s with mask %s",
                        who(f).c_str(), name, place(pc).c_str(), shown(mask).c_str(),
                        who(other).c_str(), group.name, place(other->where).c_str(),
                        shown(group.mask).c_str()),
                 f, "", other);
        }
    }
    if (!free) fail(EMU_UNSUPPORTED, "more than 8 parts of one warp wait apart in warp operations", f);
    free->name = name;
    free->mask = mask;
    free->arrived = 0;
    free->warp = &warp;
    for (uint32_t lane = 0; lane < launch.warp_size; ++lane) free->slot[lane] = nullptr;
    return *free;
}

void collective(const char* name, LaneSet mask, void* mine, Run run, void* pc, Meet how) {
    Fiber* f = me();
    enter(f);
    if (!(mask >> f->lane & 1))
        fail(EMU_MISUSE,
             format("%s calls %s at %s with mask %s, which leaves out its own lane %u",
                    who(f).c_str(), name, place(pc).c_str(), shown(mask).c_str(), f->lane),
             f);
    Group& group = join(*f->warp, name, mask, f, pc);
    group.slot[f->lane] = mine;
    group.arrived |= one_lane(f->lane);
    group.run = run;
    group.how = how;
    f->where = pc;
    if (is_complete(group))
        complete(group, f);
    else
        wait(name, pc);
}

void collective_of_all(const char* name, void* mine, Run run, void* pc) {
    Fiber* f = me();
    const Warp& warp = *f->warp;
    const LaneSet all =
        launch.warp_size == MAX_LANES ? ~LaneSet(0) : one_lane(launch.warp_size) - 1;
    if (warp.exists == all && warp.alive == all)
        return collective(name, all, mine, run, pc, Meet::WHOLE);
    fail(EMU_MISUSE,
         format("%s calls %s at %s, which needs all %u lanes of its warp; %d %s", who(f).c_str(), name,
                place(pc).c_str(), launch.warp_size, lane_count(all & ~warp.alive),
                warp.exists == all ? "have left the kernel" : "are not there"),
         f);
}

void lane_left(Warp& warp) {
    for (Group& group : warp.group)
        if (group.name && is_complete(group)) complete(group, nullptr);
}

bool run_partial(Team& team) {
    for (Block& block : team.blocks)
        for (Warp& warp : block.warps)
            for (Group& group : warp.group)
                if (group.name && group.how == Meet::PARTIAL) {
                    complete(group, nullptr);
                    return true;
                }
    return false;
}

void order_lanes(Group& group) {
    if (!launch.races) return;
    const Warp& warp = *group.warp;
    Team& team = *warp.block->team;
    ClockJoin all(team.actors);
    for (LaneSet rest = group.arrived; rest; rest &= rest - 1) {
        const Fiber* f = warp.lane[first_lane(rest)];
        all.add(f->known);
        all.add(f->id, f->time);
    }
    const ClockRef known = all.take();
    for (LaneSet rest = group.arrived; rest; rest &= rest - 1) {
        Fiber* f = warp.lane[first_lane(rest)];
        f->learn(known);
        ++f->time;
    }
}

}  // namespace emu
