// The common case of a check, short enough to be inlined: a thread touches shared memory of its own
// block as it did a moment ago.
#pragma once
#include <cstring>

#include "cells.h"

namespace emu {

// `mark` in each of `bytes` bytes.
template <unsigned bytes>
constexpr uint64_t every_byte(uint8_t mark) {
    uint64_t all = 0;
    for (unsigned i = 0; i < bytes && i < 8; ++i) all |= uint64_t(mark) << 8 * i;
    return all;
}

// Whether f has touched these bytes of the cell in the same way since its last release: then
// nothing can have become wrong that was not seen before.
inline bool is_repeated(const Cell& cell, const Record& now) {
    static_assert(sizeof(Record) == 16, "compared as two words below");
    uint64_t when, what;
    std::memcpy(&when, &now, 8);       // team and time
    std::memcpy(&what, &now.pc, 8);    // line, and thread, bytes, access above it
    for (const Record& old : cell.record) {
        uint64_t old_when, old_what;
        std::memcpy(&old_when, &old, 8);
        std::memcpy(&old_what, &old.pc, 8);
        if (old_when == when && old_what >> 32 == what >> 32) return true;
    }
    return false;
}

// True if the access is fine and needs no record; false: ask `check`. Sizes 1, 2, 4, 8, 16, aligned.
template <Access access, unsigned bytes>
inline bool is_fine(const Fiber* f, uintptr_t address) {
    const Block& block = *f->block;
    const size_t offset = address - reinterpret_cast<uintptr_t>(block.arena);
    if (offset >= ARENA_BYTES || offset % bytes) return false;
    // Written before, and no asynchronous operation is busy there.
    constexpr uint8_t wanted = PLACED | WRITTEN;
    constexpr uint8_t looked = wanted | BUSY_WRITE | (access == Access::READ ? 0 : BUSY_READ);
    for (unsigned i = 0; i < bytes; i += 8) {
        uint64_t marks = 0;
        std::memcpy(&marks, block.marks + offset + i, bytes < 8 ? bytes : 8);
        if ((marks & every_byte<bytes>(looked)) != every_byte<bytes>(wanted)) return false;
    }
    if (!launch.races) return true;
    const Cell* cells = arena_cells(block) + offset / 4;
    const auto mask = uint8_t(bytes < 4 ? ((1u << bytes) - 1) << offset % 4 : 0xf);
    const Record now{f->team->serial, f->time, 0, uint16_t(f->id), mask, uint8_t(access)};
    for (unsigned i = 0; i < (bytes + 3) / 4; ++i)
        if (!is_repeated(cells[i], now)) return false;
    return true;
}

}  // namespace emu
