// Moore Threads' dialect: CUDA's names; lanes work together in groups of 32, also where a warp has 128.
#pragma once
#include "device.h"
#include "vectors.h"
#include "math.h"
#include "bits.h"
#include "numbers.h"
#include "atomics.h"
#include "fragments.h"

#define warpSize EMU_WARP
#define __syncthreads() ((void)emu_barrier(0, 0, 0, "__syncthreads"))
#define __syncthreads_count(p) ((int)emu_barrier(0, 0, (p) ? 1 : 0, "__syncthreads_count"))
#define __syncthreads_or(p) ((int)(emu_barrier(0, 0, (p) ? 1 : 0, "__syncthreads_or") != 0))
#define __syncthreads_and(p) ((int)(emu_barrier(0, 0, (p) ? 0 : 1, "__syncthreads_and") == 0))
#define __syncthreads_lm() ((void)emu_barrier(0, 0, 0, "__syncthreads_lm"))
#if EMU_WARP == 32
EMU_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { emu_warp_barrier(mask); }
#endif

#define EMU_SHUFFLE(name, mode, type)                                                   \
    template <class T>                                                                  \
    EMU_INLINE T name##_sync(unsigned mask, T value, type arg, int width = 32) {        \
        static_assert(sizeof(T) <= 16, "a shuffle moves at most 16 bytes");             \
        emu_shuffle_of_32(&value, (int)sizeof(T), mode, (int)arg, width, mask);         \
        return value;                                                                   \
    }
EMU_SHUFFLE(__shfl, SHUFFLE_INDEX, int)
EMU_SHUFFLE(__shfl_up, SHUFFLE_UP, unsigned)
EMU_SHUFFLE(__shfl_down, SHUFFLE_DOWN, unsigned)
EMU_SHUFFLE(__shfl_xor, SHUFFLE_XOR, int)
#undef EMU_SHUFFLE
EMU_INLINE unsigned __ballot_sync(unsigned mask, int p) { return emu_vote_of_32(VOTE_BALLOT, mask, p != 0, nullptr); }
EMU_INLINE int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
EMU_INLINE int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }
EMU_INLINE unsigned __activemask() { return emu_active_mask_of_32(); }

#define __threadfence() emu_fence()
#define __threadfence_block() emu_fence()
#define __threadfence_system() emu_fence()
#define __trap() emu_trap("__trap()")

// Operands are registers of 32 bits. Forms of 16-bit products: 0 b runs along n, 1 both operands run along
// k, 2 neither does, 3 a runs along m. Of bytes only form 1 is modelled.
EMU_INLINE int emu_form(int form, const char* refused) {
    if (form < 0 || form > 3) emu_trap(refused);
    return form;
}
#define EMU_TCE(name, unit, type)                                                                           \
    EMU_INLINE void name(int* d, const int* a, const int* b, const int* c, int, int, int, int, int,         \
                         int form) {                                                                        \
        emu_fragments(unit + emu_form(form, #name " with a form that it does not have"), type, type,         \
                      TYPE_F32, d, a, b, c);                                                                \
    }
#if EMU_MUSA == 220
EMU_TCE(__musa_fmma_m32n32k16_mma, FRAGMENTS_FMMA_16, TYPE_F16)
EMU_TCE(__musa_bfmma_m32n32k16_mma, FRAGMENTS_FMMA_16, TYPE_BF16)
EMU_INLINE void __musa_imma_m32n32k32_mma(int* d, const int* a, const int* b, const int* c, int, int, int, int,
                                          int, int form) {
    if (form != 1) emu_trap("__musa_imma_m32n32k32_mma with operands that do not run along k");
    emu_fragments(FRAGMENTS_IMMA_32, TYPE_S8, TYPE_S8, TYPE_S32, d, a, b, c);
}
#endif
#undef EMU_TCE

#if EMU_MUSA >= 310
// type: 0 unsigned, 1 signed bytes, 2 half, 3 bfloat16, 5 E4M3, 6 E5M2, 11 and 12 E4M3 by E5M2 and back
EMU_INLINE void __musa_wmma_m16n16k16_mma(int* d, const int* a, const int* b, const int* c, int, int, int, int,
                                          int, int form, int type) {
    emu_form(form, "__musa_wmma_m16n16k16_mma with a form that it does not have");
    if (type != 2 && type != 3) emu_trap("__musa_wmma_m16n16k16_mma of other than 16-bit floats");
    const int kind = type == 2 ? TYPE_F16 : TYPE_BF16;
    emu_fragments(FRAGMENTS_WMMA_16 + form, kind, kind, TYPE_F32, d, a, b, c);
}
EMU_INLINE void __musa_wmma_m16n16k32_mma(int* d, const int* a, const int* b, const int* c, int, int, int, int,
                                          int, int form, int type) {
    if (form != 1) emu_trap("__musa_wmma_m16n16k32_mma with operands that do not run along k");
    if (type == 0 || type == 1) {
        const int kind = type == 0 ? TYPE_U8 : TYPE_S8;
        emu_fragments(FRAGMENTS_WMMA_32, kind, kind, TYPE_S32, d, a, b, c);
        return;
    }
    if (type != 5 && type != 6 && type != 11 && type != 12)
        emu_trap("__musa_wmma_m16n16k32_mma of other than 8-bit integers and floats");
    const int first = type == 5 || type == 11 ? TYPE_E4M3 : TYPE_E5M2;
    const int second = type == 5 || type == 12 ? TYPE_E4M3 : TYPE_E5M2;
    emu_fragments(FRAGMENTS_WMMA_32, first, second, TYPE_F32, d, a, b, c);
}
#endif
