// The bfloat16 type under its dialect's names: EMU_BF16, EMU_BF162 (default: CUDA's).
#pragma once
#ifndef EMU_BF16
#define EMU_BF16 __nv_bfloat16
#define EMU_BF162 __nv_bfloat162
#endif
#define EMU_SMALL EMU_BF16
#define EMU_PAIR EMU_BF162
#define EMU_TO_FLOAT emu::bfloat_to_float
#define EMU_FROM_FLOAT emu::float_to_bfloat
#define EMU_ATOMIC_CODE TYPE_BF16
#include "small_float.h"
#undef EMU_SMALL
#undef EMU_PAIR
#undef EMU_TO_FLOAT
#undef EMU_FROM_FLOAT
#undef EMU_ATOMIC_CODE

EMU_INLINE float __bfloat162float(EMU_BF16 b) { return b; }
EMU_INLINE EMU_BF16 __float2bfloat16(float f) { return f; }
EMU_INLINE EMU_BF16 __float2bfloat16_rn(float f) { return f; }
EMU_INLINE EMU_BF16 __double2bfloat16(double f) { return f; }
EMU_INLINE EMU_BF16 __float2bfloat16_rz(float f) {
    return f != f ? EMU_BF16(f) : EMU_BF16::of_bits((unsigned short)(emu::float_to_bits(f) >> 16));
}
EMU_INLINE EMU_BF162 __floats2bfloat162_rn(float a, float b) { return {EMU_BF16(a), EMU_BF16(b)}; }
EMU_INLINE EMU_BF162 __float22bfloat162_rn(float2 f) { return {EMU_BF16(f.x), EMU_BF16(f.y)}; }
EMU_INLINE EMU_BF162 __float2bfloat162_rn(float f) { return {EMU_BF16(f), EMU_BF16(f)}; }
EMU_INLINE float2 __bfloat1622float2(EMU_BF162 b) { return {(float)b.x, (float)b.y}; }
EMU_INLINE float __low2float(EMU_BF162 b) { return b.x; }
EMU_INLINE float __high2float(EMU_BF162 b) { return b.y; }
EMU_INLINE EMU_BF16 __low2bfloat16(EMU_BF162 b) { return b.x; }
EMU_INLINE EMU_BF16 __high2bfloat16(EMU_BF162 b) { return b.y; }
EMU_INLINE EMU_BF162 __low2bfloat162(EMU_BF162 b) { return {b.x, b.x}; }
EMU_INLINE EMU_BF162 __high2bfloat162(EMU_BF162 b) { return {b.y, b.y}; }
EMU_INLINE EMU_BF162 __bfloat162bfloat162(EMU_BF16 b) { return {b, b}; }
EMU_INLINE EMU_BF162 __halves2bfloat162(EMU_BF16 a, EMU_BF16 b) { return {a, b}; }
EMU_INLINE EMU_BF162 make_bfloat162(EMU_BF16 a, EMU_BF16 b) { return {a, b}; }
EMU_INLINE unsigned short __bfloat16_as_ushort(EMU_BF16 b) { return b.bits; }
EMU_INLINE short __bfloat16_as_short(EMU_BF16 b) { return (short)b.bits; }
EMU_INLINE EMU_BF16 __ushort_as_bfloat16(unsigned short u) { return EMU_BF16::of_bits(u); }
EMU_INLINE EMU_BF16 __short_as_bfloat16(short s) { return EMU_BF16::of_bits((unsigned short)s); }
EMU_INLINE int __bfloat162int_rn(EMU_BF16 b) { return __float2int_rn(b); }
EMU_INLINE int __bfloat162int_rz(EMU_BF16 b) { return __float2int_rz(b); }
EMU_INLINE EMU_BF16 __int2bfloat16_rn(int x) { return (float)x; }
EMU_INLINE EMU_BF16 __uint2bfloat16_rn(unsigned x) { return (float)x; }
