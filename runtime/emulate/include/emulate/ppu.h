// T-Head's dialect: CUDA's names on warps of 32 lanes; its assembler has `ppu.` in front of opcodes.
#pragma once
#include "device.h"
#include "vectors.h"
#define EMU_ARCH 0  // of CUDA's own forms none is there
#include "math.h"
#include "bits.h"
#include "warp_cuda.h"
#include "atomics.h"
#include "ptx.h"
#include "ptx_scalar.h"
#include "ptx_memory.h"
#include "fragments.h"

extern "C" void emu_ldmatrix_bytes(uint32_t* registers, uint32_t address);

namespace emu {
namespace ptx {
// ldmatrix.m16n16.x1.trans: four matrices of 8x8, each transposed, and the two off the diagonal exchanged.
template <class T>
EMU_INLINE void ldmatrix_16x16_turned(Pack<T, 4> d, uint32_t address) {
    uint32_t words[4];
    emu_ldmatrix(4, true, words, address);
    const uint32_t turned[4] = {words[0], words[2], words[1], words[3]};
    d.store(turned);
}
// ldmatrix.m16n16.x2.diagswap.trans of bytes: each lane names a row of 16.
template <class T>
EMU_INLINE void ldmatrix_bytes_turned(Pack<T, 4> d, uint32_t address) {
    uint32_t words[4];
    emu_ldmatrix_bytes(words, address);
    d.store(words);
}
template <int unit, int type, int total, class D, class A, class B, class C>
EMU_INLINE void matrix(Pack<D, 8> d, Pack<A, 4> a, Pack<B, 4> b, Pack<C, 8> c) {
    static_assert(sizeof(D) == 4 && sizeof(C) == 4, "accumulators are registers of 32 bits");
    uint32_t sums[8], wa[4], wb[4], wc[8];
    a.load(wa);
    b.load(wb);
    c.load(wc);
    emu_fragments(unit, type, type, total, sums, wa, wb, wc);
    d.store(sums);
}
}  // namespace ptx
}  // namespace emu
