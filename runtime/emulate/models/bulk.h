// Bulk copies: boxes of tensor maps and runs of bytes between global and shared memory.
#pragma once
#include "mbarrier.h"

namespace emu {

// The map at a generic address; refuses what no host encoded.
TensorMap read_map(Fiber* f, const void* at, const char* name, void* pc);
// Checks a box against its map and its place in shared memory, and fills in its size.
void check_box(Fiber* f, Transfer& t, const char* name, void* pc);
// The global memory of a transfer, piece by piece: touched in the name of `actor`.
void touch_global(Fiber& actor, const Transfer& t, Access access, void* pc);

// Moves the bytes. `take` reads the source of a store, `give` writes what it took.
void load(const Transfer& t);
std::vector<unsigned char> take(const Transfer& t);
void give(const Transfer& t, const std::vector<unsigned char>& data);

// A load takes effect and reports its bytes.
void perform(Units& units, const Load& load);

}  // namespace emu
