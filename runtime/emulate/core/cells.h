// Who touched a word last: four records for each 4 bytes.
#pragma once
#include "context.h"
#include "shadow.h"

namespace emu {

// Team and thread of one access, its time on that thread's clock, and its line.
struct Record {
    uint32_t team;  // 0: free
    uint32_t time;
    uint32_t pc;  // offset into the module
    uint16_t thread;
    uint8_t bytes;   // which of the 4
    uint8_t access;  // Access
};

struct Cell {
    Record record[4];
};

// The record that `now` races with, or nullptr; then `now` is entered. Writes are kept over reads:
// a read is dropped when there is no room, so a race may be missed in a crowd but none is made up.
// `keep_team` says that records of other teams still count (global memory).
const Record* enter_record(Cell& cell, const Record& now, const Fiber* f, bool keep_team);
// Forgets the writes that `now` repeats with the same value.
void forget_writes(Cell& cell, const Record& now);

uint32_t module_offset(const void* pc);

// The cells of a block's shared memory, behind its marks.
inline Cell* arena_cells(const Block& block) {
    return reinterpret_cast<Cell*>(block.marks + ARENA_BYTES);
}

}  // namespace emu
