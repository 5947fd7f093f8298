// The registers of wgmma's accumulators: which of a lane hold what, and moving values in and out.
#include <algorithm>
#include <cstring>

#include "matrix.h"
#include "wgmma.h"

namespace emu {

// Row and column of the pair that begins at value `i` of a lane: two values lie side by side.
static size_t spot(int lane, int i, int n) {
    const int row = 16 * (lane / 32) + lane % 32 / 4 + 8 * (i >> 1 & 1);
    return size_t(row * n + 8 * (i >> 2) + 2 * (lane % 4));
}

// Calls f(place of the register or of its half pair, index in the tile) for every two values.
template <class F>
static void for_pairs(const Accumulators& acc, uint32_t lane, F f) {
    const auto& at = acc.registers[lane];
    const size_t size = acc.type == TYPE_F16 ? 2 : 4;
    for (int i = 0; i < acc.n / 2; i += 2) {
        const size_t tile = spot(int(lane), i, acc.n);
        if (at.size() == 1) {
            auto* p = static_cast<unsigned char*>(at[0]) + size_t(i) * size;
            f(p, p + size, tile);
        } else if (acc.type == TYPE_F16) {
            auto* p = static_cast<unsigned char*>(at[size_t(i) / 2]);
            f(p, p + 2, tile);
        } else {
            f(static_cast<unsigned char*>(at[size_t(i)]), static_cast<unsigned char*>(at[size_t(i) + 1]), tile);
        }
    }
}

void read_registers(Accumulators& acc, uint32_t lane) {
    for_pairs(acc, lane, [&](const unsigned char* p, const unsigned char* q, size_t tile) {
        if (acc.type == TYPE_S32) {
            std::memcpy(&acc.ints[tile], p, 4);
            std::memcpy(&acc.ints[tile + 1], q, 4);
        } else if (acc.type == TYPE_F32) {
            std::memcpy(&acc.floats[tile], p, 4);
            std::memcpy(&acc.floats[tile + 1], q, 4);
        } else {
            acc.floats[tile] = element(TYPE_F16, p, 0);
            acc.floats[tile + 1] = element(TYPE_F16, q, 0);
        }
    });
}

void write_registers(Accumulators& acc, uint32_t lane) {
    for_pairs(acc, lane, [&](unsigned char* p, unsigned char* q, size_t tile) {
        if (acc.type == TYPE_S32) {
            std::memcpy(p, &acc.ints[tile], 4);
            std::memcpy(q, &acc.ints[tile + 1], 4);
        } else if (acc.type == TYPE_F32) {
            std::memcpy(p, &acc.floats[tile], 4);
            std::memcpy(q, &acc.floats[tile + 1], 4);
        } else {
            const uint16_t low = float_to_half(acc.floats[tile]), high = float_to_half(acc.floats[tile + 1]);
            std::memcpy(p, &low, 2);
            std::memcpy(q, &high, 2);
        }
    });
}

// All bits set: NaN in every floating type.
void poison(Accumulators& acc, uint32_t lane) {
    if (acc.registers[lane].size() == 1) {
        std::memset(acc.registers[lane][0], 0xff, acc.bytes());
        return;
    }
    for (void* p : acc.registers[lane]) std::memset(p, 0xff, 4);
}

bool covers(const Accumulators& acc, uint32_t lane, uintptr_t at) {
    const auto& registers = acc.registers[lane];
    if (registers.size() == 1) return at - reinterpret_cast<uintptr_t>(registers[0]) < acc.bytes();
    return std::any_of(registers.begin(), registers.end(),
                       [&](void* p) { return at - reinterpret_cast<uintptr_t>(p) < 4; });
}

}  // namespace emu
