// Everything that hip/hip_runtime.h gives a kernel.
#pragma once
#include "device.h"
#include "vectors.h"

extern "C" {
void emu_cp_async(uint32_t dst, const void* src, uint32_t bytes, uint32_t src_bytes);
void emu_cp_async_commit();
void emu_cp_async_wait(int pending);
}
#include "math.h"
#include "bits.h"
#include "numbers.h"
#include "warp_hip.h"
#include "atomics.h"
#include "vec.h"
#include "mfma.h"

// Bits of a word: where they start and how many, of which five bits count.
EMU_INLINE unsigned __bitextract_u32(unsigned x, unsigned start, unsigned width) {
    return x >> (start & 31) & ((1u << (width & 31)) - 1);
}
EMU_INLINE unsigned __bitinsert_u32(unsigned x, unsigned y, unsigned start, unsigned width) {
    const unsigned mask = ((1u << (width & 31)) - 1) << (start & 31);
    return (x & ~mask) | (y << (start & 31) & mask);
}

// HIP's own vectors have arithmetic.
#define EMU_OP(op)                                                                                  \
    EMU_INLINE float2 operator op(float2 a, float2 b) { return {a.x op b.x, a.y op b.y}; }          \
    EMU_INLINE float4 operator op(float4 a, float4 b) {                                             \
        return {a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w};                                    \
    }                                                                                               \
    EMU_INLINE float2& operator op##=(float2& a, float2 b) { return a = a op b; }                   \
    EMU_INLINE float4& operator op##=(float4& a, float4 b) { return a = a op b; }
EMU_OP(+)
EMU_OP(-)
EMU_OP(*)
EMU_OP(/)
#undef EMU_OP

// g++ 12 has _Float16 but no __bf16.
#define EMU_SMALL emu_bf16
#define EMU_PAIR emu_bf16_pair
#define EMU_TO_FLOAT emu::bfloat_to_float
#define EMU_FROM_FLOAT emu::float_to_bfloat
#define EMU_ATOMIC_CODE TYPE_BF16
#include "small_float.h"
#undef EMU_SMALL
#undef EMU_PAIR
#undef EMU_TO_FLOAT
#undef EMU_FROM_FLOAT
#undef EMU_ATOMIC_CODE
#define __bf16 emu_bf16

namespace emu {
EMU_ATOMIC_TYPE(_Float16, TYPE_F16)
}

// Conversions of 8-bit floats, four of which lie in a register: gfx942 has the fnuz kinds, others the common
// ones. What is too large becomes NaN (or infinity), as without the mode that clamps.
#if EMU_GFX == 0x942 || EMU_GFX == 0x950 || EMU_GFX >= 0x1200
#if EMU_GFX == 0x942
#define EMU_F8_FORMS(name) emu::name##fnuz_form
#else
#define EMU_F8_FORMS(name) emu::name##_form
#endif
#define EMU_CONVERSIONS(name, form)                                                              \
    EMU_INLINE float __builtin_amdgcn_cvt_f32_##name(int four, int which) {                       \
        return emu::float8_to_float((unsigned char)((unsigned)four >> 8 * which), form);          \
    }                                                                                             \
    EMU_INLINE int __builtin_amdgcn_cvt_pk_##name##_f32(float a, float b, int old, bool high) {   \
        const unsigned two = emu::float_to_float8(a, form, false) |                               \
                             (unsigned)emu::float_to_float8(b, form, false) << 8;                 \
        return (int)(high ? ((unsigned)old & 0xffffu) | two << 16 : ((unsigned)old & ~0xffffu) | two); \
    }
EMU_CONVERSIONS(fp8, EMU_F8_FORMS(e4m3))
EMU_CONVERSIONS(bf8, EMU_F8_FORMS(e5m2))
#undef EMU_CONVERSIONS
#undef EMU_F8_FORMS
#endif
