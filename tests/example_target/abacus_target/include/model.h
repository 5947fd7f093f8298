// What the chip's compiler knows without a declaration, modelled for the emulator.
#pragma once
#include "emulate/device.h"
#include "emulate/vectors.h"
#include "emulate/math.h"
#include "emulate/bits.h"
#include "emulate/numbers.h"
#include "emulate/atomics.h"
#include "emulate/half.h"

#define block_meet() ((void)emu_barrier(0, 0, 0, "block_meet"))

// Mask 0: the lanes that are here.
template <class T>
EMU_INLINE T lane_swap_xor(T value, int bits) {
    emu_shuffle(&value, (int)sizeof(T), SHUFFLE_XOR, bits, 16, 0);
    return value;
}
template <class T>
EMU_INLINE T lane_swap_up(T value, unsigned by, int width = 16) {
    emu_shuffle(&value, (int)sizeof(T), SHUFFLE_UP, (int)by, width, 0);
    return value;
}
template <class T>
EMU_INLINE T lane_swap(T value, int lane, int width = 16) {
    emu_shuffle(&value, (int)sizeof(T), SHUFFLE_INDEX, lane, width, 0);
    return value;
}

// The matrix unit, by asking the other lanes for what they hold.
inline void abacus_product(float* c, const unsigned (&a)[2], const unsigned (&b)[2]) {
    const auto element = [](const unsigned (&part)[2], int lane, int k) {
        const unsigned pair = lane_swap(part[k / 2], lane);
        return (float)half::of_bits((unsigned short)(k % 2 ? pair >> 16 : pair & 0xffff));
    };
    const int lane = (int)emu_lane(), row = lane % 8;
    for (int v = 0; v < 4; ++v)
        for (int k = 0; k < 8; ++k) {
            const int from = k / 4 * 8;  // the lanes that hold this k
            const float x = element(a, row + from, k % 4);
            c[v] += x * element(b, lane / 8 * 4 + v + from, k % 4);
        }
}
