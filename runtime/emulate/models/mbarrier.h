// mbarriers: phases that end when all arrivals and all announced bytes are there.
#pragma once
#include "units.h"

namespace emu {

// The barrier at a shared address (`shared`) or a generic one; refuses what no init made.
// `by_unit`: the copy that f issues reports to it, f itself does not touch it.
MBarrier& find_barrier(Fiber* f, int shared, uint64_t address, const char* name, void* pc, bool by_unit = false);
// The same at a place of shared memory, nullptr if there is none.
MBarrier* barrier_at(Units& units, const unsigned char* at);

// Bytes of a copy are there: its operation, at `time` of the barrier's unit, is over.
void complete_bytes(Units& units, MBarrier& bar, uint32_t bytes, uint32_t time, const Fiber* f, void* pc);
// An arrival in the name of f.
void arrive(Units& units, MBarrier& bar, Fiber* f, uint32_t count, const char* name, void* pc);

}  // namespace emu
