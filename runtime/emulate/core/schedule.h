// Who runs next: ready fibers in order, direct switches, barriers, and what to do when all wait.
#pragma once
#include "context.h"

namespace emu {

// Runs every thread of the worker's team to its end; false when the launch failed.
bool run_team(Worker& worker);

void make_ready(Fiber* f);
// Gives the processor away until someone makes this fiber ready. `doing` is for reports.
void wait(const char* doing, void* where);
// Lets the others run first; for polling loops.
void yield(const char* doing, void* where);
// Every entry of a kernel into the runtime passes here: settles what was left open.
void enter(Fiber* f);

// A barrier of the block over `expected` threads (0: all that live). Returns how many threads came
// with a true predicate.
uint32_t barrier_sync(uint32_t id, uint32_t expected, bool predicate, const char* name, void* pc);
void barrier_arrive(uint32_t id, uint32_t expected, void* pc);

// Called when all fibers wait, before that counts as a deadlock; true if it made one ready.
// Asynchronous units register here.
using IdleHook = bool (*)(Team&);
void add_idle_hook(IdleHook hook);
// Called when a thread ends and when a team starts.
using FiberHook = void (*)(Fiber*);
void add_exit_hook(FiberHook hook, bool first = false);
using TeamHook = void (*)(Team&);
void add_start_hook(TeamHook hook);

}  // namespace emu
