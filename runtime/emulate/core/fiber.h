// Fibers: one stack a thread, switched by hand.
#pragma once
#include "context.h"

namespace emu {

// Reserves stacks for `count` fibers, each with a guard page, and makes them findable by `me`.
void make_pool(size_t count);
void free_pool();

// Prepares `f` to run `body` from the start of its stack when it is first switched to.
void prepare(Fiber* f, void (*body)());

// Saves where the caller stands in *save and continues at `load`.
extern "C" void emu_swap(void** save, void* load);

}  // namespace emu
