// Shared memory of another block of the cluster: it is there as long as one of that block's threads is.
#include "schedule.h"
#include "shadow.h"

namespace emu {

[[noreturn]] static void gone(Fiber* f, const Block& block, const Visit& visit) {
    const Fiber* visitor = &f->team->fibers[visit.thread];
    fail(EMU_RACE,
         format("%s%s %s at %s shared memory of another block of its cluster; nothing keeps that block's threads, "
                "such as %s, from ending before",
                visit.actor == visit.thread ? "" : "the bulk copy of ", who(visitor).c_str(),
                visit.reads ? "reads" : "writes", place(visit.pc).c_str(), who(block.fibers).c_str()),
         f, "", block.fibers);
}

void note_visit(Fiber* f, Block& block, Access access, void* pc) {
    const uint32_t threads = f->team->threads;
    const uint32_t thread = f->id < threads ? f->id : f->team->issuer[f->id - threads];
    const Visit now{f->id, f->time, pc, access == Access::READ, thread};
    if (!block.live) gone(f, block, now);
    if (!launch.races) return;
    for (Visit& visit : block.visits)
        if (visit.actor == f->id) {
            visit = now;
            return;
        }
    block.visits.push_back(now);
}

static void block_ends(Fiber* f) {
    Block& block = *f->block;
    if (block.live != 1 || block.visits.empty()) return;
    ClockJoin all(f->team->actors);
    for (uint32_t t = 0; t < block.threads; ++t) all.add(block.fibers[t].known);
    const ClockRef known = all.take();
    for (const Visit& visit : block.visits)
        if (known.get()->at[visit.actor] < visit.time) gone(f, block, visit);
}
static const bool registered = (add_exit_hook(block_ends), true);

}  // namespace emu
