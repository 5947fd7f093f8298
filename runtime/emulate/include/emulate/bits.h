// Integer intrinsics, reinterpretations, conversions with a rounding mode.
#pragma once

inline int __float_as_int(float x) { return emu::as<int>(x); }
inline unsigned __float_as_uint(float x) { return emu::as<unsigned>(x); }
inline float __int_as_float(int x) { return emu::as<float>(x); }
inline float __uint_as_float(unsigned x) { return emu::as<float>(x); }
inline long long __double_as_longlong(double x) { return emu::as<long long>(x); }
inline double __longlong_as_double(long long x) { return emu::as<double>(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    unsigned r = 0;
    for (int i = 0; i < 32; ++i) r |= (x >> i & 1u) << (31 - i);
    return r;
}
inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
// Each 4-bit selector names one of the 8 bytes of b:a; its high bit spreads the byte's sign.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const unsigned long long bytes = (unsigned long long)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned s = selector >> 4 * i & 15u;
        unsigned byte = (unsigned)(bytes >> 8 * (s & 7u)) & 0xffu;
        if (s & 8u) byte = byte & 0x80u ? 0xffu : 0u;
        r |= byte << 8 * i;
    }
    return r;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
    return (unsigned)((((unsigned long long)hi << 32 | lo) << (n & 31u)) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
    return (unsigned)(((unsigned long long)hi << 32 | lo) >> (n & 31u));
}
inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned n) {
    return n >= 32u ? lo : __funnelshift_l(lo, hi, n);
}
inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned n) {
    return n >= 32u ? hi : __funnelshift_r(lo, hi, n);
}
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i) c += (int)(signed char)(a >> 8 * i) * (int)(signed char)(b >> 8 * i);
    return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 0xffu) * (b >> 8 * i & 0xffu);
    return c;
}

namespace emu {
// Saturating, NaN gives 0, as the device's conversions do.
template <class T>
inline T to_integer(double x) {
    constexpr bool is_signed = T(-1) < T(0);
    constexpr T lowest = is_signed ? T(T(1) << (sizeof(T) * 8 - 1)) : T(0);
    constexpr T highest = T(~lowest);
    if (x != x) return T(0);
    if (x <= (double)lowest) return lowest;
    if (x >= (double)highest) return highest;
    return (T)x;
}
}  // namespace emu

#define EMU_CONVERT(from, name, type, result)                                                    \
    inline result __##from##2##name##_rn(type x) { return emu::to_integer<result>(rint((double)x)); }  \
    inline result __##from##2##name##_rz(type x) { return emu::to_integer<result>(trunc((double)x)); } \
    inline result __##from##2##name##_ru(type x) { return emu::to_integer<result>(ceil((double)x)); }  \
    inline result __##from##2##name##_rd(type x) { return emu::to_integer<result>(floor((double)x)); }
EMU_CONVERT(float, int, float, int)
EMU_CONVERT(float, uint, float, unsigned)
EMU_CONVERT(float, ll, float, long long)
EMU_CONVERT(float, ull, float, unsigned long long)
EMU_CONVERT(double, int, double, int)
EMU_CONVERT(double, uint, double, unsigned)
EMU_CONVERT(double, ll, double, long long)
#undef EMU_CONVERT
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __ll2float_rn(long long x) { return (float)x; }
inline float __double2float_rn(double x) { return (float)x; }
inline double __int2double_rn(int x) { return (double)x; }
