// Clocks, proxies and the life of sm_90's asynchronous units.
#include "units.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "../core/cells.h"

namespace emu {

Units& units_of(Team& team) {
    if (team.units) return *team.units;
    team.units = std::make_shared<Units>();
    Units& u = *team.units;
    const char* schedule = std::getenv("TILE2C_EMULATE_SCHEDULE");
    u.team = &team;
    u.early = schedule && !std::strcmp(schedule, "earliest");
    u.barriers_made.assign(team.blocks.size(), 0);
    u.time.assign(launch.units, 0);
    u.timeouts.assign(team.threads, 0);
    u.warpgroups.resize(team.blocks.size() * WARPGROUP_SLOTS);
    u.registers.resize(team.blocks.size());
    u.cluster.joined.assign(team.threads, 0);
    return u;
}

Fiber make_actor(Fiber* f, uint32_t unit, const char* role) {
    Team& team = *f->team;
    Fiber actor;
    actor.block = f->block;
    actor.warp = f->warp;
    actor.team = &team;
    actor.linear = f->linear;
    actor.lane = f->lane;
    actor.role = role;
    actor.id = team.threads + unit;
    actor.time = ++units_of(team).time[unit];
    actor.known_at = f->known_at;
    team.issuer[unit] = f->id;
    if (launch.races) {
        ClockJoin known(team.actors);
        known.add(f->known);
        known.add(f->id, f->time);
        actor.learn(known.take());
    }
    return actor;
}

void learn_over(Fiber* f, uint32_t unit, uint32_t time) {
    if (!launch.races || f->known_at[f->team->threads + unit] >= time) return;
    ClockJoin known(f->team->actors);
    known.add(f->known);
    known.add(f->team->threads + unit, time);
    f->learn(known.take());
}

bool is_fenced(const Fiber& actor, uint32_t id, uint32_t time, int kind) {
    const auto& fences = actor.team->fibers[id].proxy_fences[kind];
    const auto next = std::upper_bound(fences.begin(), fences.end(), time);
    return next != fences.end() && *next <= actor.known_at[id];
}

void check_proxy(const Fiber& actor, const unsigned char* at, uint32_t bytes, void* pc) {
    if (!launch.races) return;
    const Block* block = arena_of(*actor.team, at);
    if (!block) return;
    const auto first = uint32_t(at - block->arena);
    const Cell* cells = arena_cells(*block);
    for (uint32_t word = first / 4; word * 4 < first + bytes; ++word)
        for (const Record& old : cells[word].record) {
            if (old.team != actor.team->serial || old.access == uint8_t(Access::READ)) continue;
            if (old.thread >= actor.team->threads || is_fenced(actor, old.thread, old.time, 0)) continue;
            const Fiber* writer = &actor.team->fibers[old.thread];
            const std::string where = name_shared(*block, block->arena + word * 4);
            // Records hold offsets; the module's own address comes back through pc.
            const char* base = static_cast<const char*>(pc) - module_offset(pc);
            fail(EMU_RACE,
                 format("race in %s: %s reads at %s what %s writes at %s without fence.proxy.async "
                        "between the write and the barrier", where.c_str(), who(&actor).c_str(),
                        place(pc).c_str(), who(writer).c_str(), place(base + old.pc).c_str()),
                 &actor, where.substr(0, where.find(',')).c_str(), writer);
        }
}

void fence_proxy(Fiber* f, bool shared, bool global) {
    enter(f);
    if (!launch.races) return;
    ++f->time;
    if (shared) f->proxy_fences[0].push_back(f->time);
    if (global) f->proxy_fences[1].push_back(f->time);
    f->proxy_fences[2].push_back(f->time);
}

std::string name_shared(const Block& block, const void* at) {
    uint32_t byte = 0;
    const char* name = array_at(block, at, &byte);
    return format("%s, byte %u", name, byte);
}

}  // namespace emu

extern "C" {
void emu_fence_proxy(int shared, int global) { emu::fence_proxy(emu::me(), shared, global); }
void emu_fence_mbarrier_init() { emu::fence_proxy(emu::me(), false, false); }
}
