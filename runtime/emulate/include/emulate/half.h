// __half and __half2 as CUDA and HIP spell them; each operation rounds once, to nearest even.
#pragma once
#define EMU_SMALL __half
#define EMU_PAIR __half2
#define EMU_TO_FLOAT emu::half_to_float
#define EMU_FROM_FLOAT emu::float_to_half
#define EMU_ATOMIC_CODE TYPE_F16
#include "small_float.h"
#undef EMU_SMALL
#undef EMU_PAIR
#undef EMU_TO_FLOAT
#undef EMU_FROM_FLOAT
#undef EMU_ATOMIC_CODE
using half = __half;
using half2 = __half2;

EMU_INLINE float __half2float(__half h) { return h; }
EMU_INLINE __half __float2half(float f) { return f; }
EMU_INLINE __half __float2half_rn(float f) { return f; }
EMU_INLINE __half __double2half(double f) { return f; }
// Toward zero, up or down: take the nearest, step back if it went the wrong way.
EMU_INLINE __half emu_step_half(__half h, bool away) {
    return __half::of_bits((unsigned short)(away ? h.bits + 1 : h.bits - 1));
}
EMU_INLINE __half __float2half_rz(float f) {
    const __half h = f;
    return fabsf(h) > fabsf(f) && !isinf(f) ? emu_step_half(h, false) : h;
}
EMU_INLINE __half __float2half_ru(float f) {
    const __half h = f;
    if ((float)h >= f || f != f) return h;
    return h.bits == 0x8000u ? __half::of_bits(1) : emu_step_half(h, f > 0);
}
EMU_INLINE __half __float2half_rd(float f) { return -__float2half_ru(-f); }
EMU_INLINE __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
EMU_INLINE __half2 __float22half2_rn(float2 f) { return {__half(f.x), __half(f.y)}; }
EMU_INLINE __half2 __float2half2_rn(float f) { return {__half(f), __half(f)}; }
EMU_INLINE float2 __half22float2(__half2 h) { return {(float)h.x, (float)h.y}; }
EMU_INLINE float __low2float(__half2 h) { return h.x; }
EMU_INLINE float __high2float(__half2 h) { return h.y; }
EMU_INLINE __half __low2half(__half2 h) { return h.x; }
EMU_INLINE __half __high2half(__half2 h) { return h.y; }
EMU_INLINE __half2 __low2half2(__half2 h) { return {h.x, h.x}; }
EMU_INLINE __half2 __high2half2(__half2 h) { return {h.y, h.y}; }
EMU_INLINE __half2 __half2half2(__half h) { return {h, h}; }
EMU_INLINE __half2 __halves2half2(__half a, __half b) { return {a, b}; }
EMU_INLINE __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
EMU_INLINE __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
EMU_INLINE __half2 make_half2(__half a, __half b) { return {a, b}; }
EMU_INLINE unsigned short __half_as_ushort(__half h) { return h.bits; }
EMU_INLINE short __half_as_short(__half h) { return (short)h.bits; }
EMU_INLINE __half __ushort_as_half(unsigned short u) { return __half::of_bits(u); }
EMU_INLINE __half __short_as_half(short s) { return __half::of_bits((unsigned short)s); }
EMU_INLINE int __half2int_rn(__half h) { return __float2int_rn(h); }
EMU_INLINE int __half2int_rz(__half h) { return __float2int_rz(h); }
EMU_INLINE int __half2int_rd(__half h) { return __float2int_rd(h); }
EMU_INLINE int __half2int_ru(__half h) { return __float2int_ru(h); }
EMU_INLINE __half __int2half_rn(int x) { return (float)x; }
EMU_INLINE __half __uint2half_rn(unsigned x) { return (float)x; }
EMU_INLINE short __half2short_rn(__half h) { return emu::to_integer<short>(rint((double)(float)h)); }
EMU_INLINE __half __short2half_rn(short x) { return (float)x; }
