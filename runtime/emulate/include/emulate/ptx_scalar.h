// PTX on scalars: moves, arithmetic, comparisons, conversions. Registers are untyped bits; the
// opcode's type says how to read them.
#pragma once

namespace emu {
namespace ptx {

// Small floats as the types of an instruction.
struct F16 {
    uint16_t bits;
    static EMU_INLINE float to_float(uint16_t b) { return half_to_float(b); }
    static EMU_INLINE uint16_t from_float(float f) { return float_to_half(f); }
};
struct BF16 {
    uint16_t bits;
    static EMU_INLINE float to_float(uint16_t b) { return bfloat_to_float(b); }
    static EMU_INLINE uint16_t from_float(float f) { return float_to_bfloat(f); }
};
template <class T>
struct Two {
    T at[2];
};
using F16X2 = Two<F16>;
using BF16X2 = Two<BF16>;

// A register read as T: equal sizes are reinterpreted, integers cut or extended.
template <class T, class R>
EMU_INLINE T get(const R& r) {
    if constexpr (sizeof(T) == sizeof(R)) return as<T>(r);
    else return (T)r;
}
template <class R, class T>
EMU_INLINE void put(R& r, const T& value) {
    if constexpr (sizeof(R) == sizeof(T)) {
        __builtin_memcpy((void*)&r, &value, sizeof value);
    } else {
        static_assert(sizeof(R) > sizeof(T), "the result does not fit the asm operand");
        r = R();
        __builtin_memcpy((void*)&r, &value, sizeof value);
    }
}

enum class Op { ADD, SUB, MUL, DIV, REM, MIN, MAX, AND, OR, XOR, SHL, SHR };
enum class Cmp { EQ, NE, LT, LE, GT, GE };
enum class Fn { NEG, ABS, NOT, EX2, LG2, RCP, RSQRT, SQRT, SIN, COS, TANH, POPC, CLZ, BREV };

template <class T>
constexpr bool is_float = false;
template <>
constexpr bool is_float<float> = true;
template <>
constexpr bool is_float<double> = true;

template <Op op, class T>
EMU_INLINE T binary(T a, T b) {
    if constexpr (op == Op::ADD) return (T)(a + b);
    if constexpr (op == Op::SUB) return (T)(a - b);
    if constexpr (op == Op::MUL) return (T)(a * b);
    if constexpr (op == Op::DIV) return (T)(a / b);
    if constexpr (op == Op::MIN) return is_float<T> ? (a != a ? b : b < a ? b : a) : (b < a ? b : a);
    if constexpr (op == Op::MAX) return is_float<T> ? (a != a ? b : b > a ? b : a) : (b > a ? b : a);
    if constexpr (!is_float<T>) {
        if constexpr (op == Op::REM) return (T)(a % b);
        if constexpr (op == Op::AND) return (T)(a & b);
        if constexpr (op == Op::OR) return (T)(a | b);
        if constexpr (op == Op::XOR) return (T)(a ^ b);
    }
}
template <Op op, class T>
EMU_INLINE T binary_small(T a, T b) {
    return {T::from_float(binary<op, float>(T::to_float(a.bits), T::to_float(b.bits)))};
}
template <Op op>
EMU_INLINE F16 binary(F16 a, F16 b) { return binary_small<op>(a, b); }
template <Op op>
EMU_INLINE BF16 binary(BF16 a, BF16 b) { return binary_small<op>(a, b); }
template <Op op, class T>
EMU_INLINE Two<T> binary(Two<T> a, Two<T> b) {
    return {{binary_small<op>(a.at[0], b.at[0]), binary_small<op>(a.at[1], b.at[1])}};
}

template <class T, Op op, class D, class A, class B>
EMU_INLINE void arithmetic(D& d, const A& a, const B& b) {
    put(d, binary<op>(get<T>(a), get<T>(b)));
}
// Shifts by the width or more give 0, or the sign.
template <class T, Op op, class D, class A>
EMU_INLINE void shift(D& d, const A& a, uint32_t by) {
    constexpr uint32_t width = sizeof(T) * 8;
    const T x = get<T>(a);
    if constexpr (op == Op::SHL) put(d, by >= width ? T(0) : (T)(x << by));
    else put(d, by >= width ? (T)(x < T(0) ? T(-1) : T(0)) : (T)(x >> by));
}

template <class T>
EMU_INLINE T multiply_add(T a, T b, T c) { return (T)(a * b + c); }
EMU_INLINE float fused(float a, float b, float c) { return fmaf(a, b, c); }
EMU_INLINE double fused(double a, double b, double c) { return fma(a, b, c); }
template <class T>
EMU_INLINE T fused_small(T a, T b, T c) {
    return {T::from_float((float)((double)T::to_float(a.bits) * T::to_float(b.bits) + T::to_float(c.bits)))};
}
EMU_INLINE F16 fused(F16 a, F16 b, F16 c) { return fused_small(a, b, c); }
EMU_INLINE BF16 fused(BF16 a, BF16 b, BF16 c) { return fused_small(a, b, c); }
template <class T>
EMU_INLINE Two<T> fused(Two<T> a, Two<T> b, Two<T> c) {
    return {{fused_small(a.at[0], b.at[0], c.at[0]), fused_small(a.at[1], b.at[1], c.at[1])}};
}
template <class T, class D, class A, class B, class C>
EMU_INLINE void mad(D& d, const A& a, const B& b, const C& c) {
    put(d, multiply_add(get<T>(a), get<T>(b), get<T>(c)));
}
template <class T, class D, class A, class B, class C>
EMU_INLINE void fma_(D& d, const A& a, const B& b, const C& c) {
    put(d, fused(get<T>(a), get<T>(b), get<T>(c)));
}
template <class T, class W, class D, class A, class B>
EMU_INLINE void mul_wide(D& d, const A& a, const B& b) {
    put(d, (W)((W)get<T>(a) * (W)get<T>(b)));
}
template <class T, class W, class D, class A, class B>
EMU_INLINE void mul_hi(D& d, const A& a, const B& b) {
    put(d, (T)(((W)get<T>(a) * (W)get<T>(b)) >> sizeof(T) * 8));
}

template <Fn fn, class T>
EMU_INLINE T unary(T x) {
    if constexpr (fn == Fn::NEG) return (T)-x;
    if constexpr (fn == Fn::ABS) return x < T(0) ? (T)-x : x;
    if constexpr (is_float<T>) {
        if constexpr (fn == Fn::EX2) return exp2(x);
        if constexpr (fn == Fn::LG2) return log2(x);
        if constexpr (fn == Fn::RCP) return T(1) / x;
        if constexpr (fn == Fn::RSQRT) return T(1) / sqrt(x);
        if constexpr (fn == Fn::SQRT) return sqrt(x);
        if constexpr (fn == Fn::SIN) return sin(x);
        if constexpr (fn == Fn::COS) return cos(x);
        if constexpr (fn == Fn::TANH) return tanh(x);
    } else {
        if constexpr (fn == Fn::NOT) return (T)~x;
        if constexpr (fn == Fn::POPC) return (T)__popcll((unsigned long long)x);
        if constexpr (fn == Fn::CLZ) return (T)(sizeof(T) == 8 ? __clzll((long long)x) : __clz((int)x));
        if constexpr (fn == Fn::BREV) return (T)__brev((unsigned)x);
    }
}
template <Fn fn>
EMU_INLINE F16 unary(F16 x) { return {F16::from_float(unary<fn, float>(F16::to_float(x.bits)))}; }
template <Fn fn>
EMU_INLINE BF16 unary(BF16 x) { return {BF16::from_float(unary<fn, float>(BF16::to_float(x.bits)))}; }
template <Fn fn, class T>
EMU_INLINE Two<T> unary(Two<T> x) { return {{unary<fn>(x.at[0]), unary<fn>(x.at[1])}}; }
template <class T, Fn fn, class D, class A>
EMU_INLINE void function(D& d, const A& a) {
    put(d, unary<fn>(get<T>(a)));
}

template <class T>
EMU_INLINE void mov(bool& d, const T& a) { d = (bool)a; }
template <class D, class A>
EMU_INLINE void mov(D& d, const A& a) { put(d, get<D>(a)); }
// {lo, hi} to and from one register.
template <class D, class T, int n>
EMU_INLINE void mov(D& d, Pack<T, n> s) {
    T parts[n];
    s.load(parts);
    put(d, as<D>(parts));
}
template <class T, int n, class A>
EMU_INLINE void mov(Pack<T, n> d, const A& a) {
    struct Parts {
        T at[n];
    };
    const Parts parts = as<Parts>(a);
    d.store(parts.at);
}

template <Cmp cmp, class T>
EMU_INLINE bool compare(T a, T b) {
    if constexpr (cmp == Cmp::EQ) return a == b;
    if constexpr (cmp == Cmp::NE) return a != b;
    if constexpr (cmp == Cmp::LT) return a < b;
    if constexpr (cmp == Cmp::LE) return a <= b;
    if constexpr (cmp == Cmp::GT) return a > b;
    return a >= b;
}
template <class T, Cmp cmp, class A, class B>
EMU_INLINE void setp(bool& p, const A& a, const B& b) { p = compare<cmp>(get<T>(a), get<T>(b)); }
template <class D, class A, class B>
EMU_INLINE void selp(D& d, const A& a, const B& b, bool p) {
    if (p) mov(d, a);
    else mov(d, b);
}

// Any of the 256 functions of three bits: `table` bit 4a + 2b + c.
template <class D>
EMU_INLINE void lop3(D& d, uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t r = 0;
    for (int i = 0; i < 8; ++i)
        if (table >> i & 1u) r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    put(d, r);
}
template <class D>
EMU_INLINE void prmt(D& d, uint32_t a, uint32_t b, uint32_t selector) { put(d, __byte_perm(a, b, selector)); }
template <class D>
EMU_INLINE void shf_l(D& d, uint32_t a, uint32_t b, uint32_t n) { put(d, __funnelshift_l(a, b, n)); }
template <class D>
EMU_INLINE void shf_r(D& d, uint32_t a, uint32_t b, uint32_t n) { put(d, __funnelshift_r(a, b, n)); }
template <class T, class D, class A>
EMU_INLINE void bfe(D& d, const A& a, uint32_t at, uint32_t count) {
    const T x = get<T>(a);
    if (count == 0 || at >= 32) return put(d, T(0));
    if (count > 32 - at) count = 32 - at;
    put(d, (T)((T)(x << (32 - at - count)) >> (32 - count)));
}
template <class D>
EMU_INLINE void bfi(D& d, uint32_t a, uint32_t b, uint32_t at, uint32_t count) {
    const uint32_t mask = at >= 32 || !count ? 0u : (count >= 32 ? ~0u : (1u << count) - 1u) << at;
    put(d, (b & ~mask) | (a << (at & 31u) & mask));
}

// ---- conversions

template <class T>
EMU_INLINE float widen(T x) {
    if constexpr (sizeof(T) == 2 && !is_float<T>) return T::to_float(x.bits);
    else return (float)x;
}
enum class Round { NEAREST, ZERO, DOWN, UP };
template <Round round, class To, class From>
EMU_INLINE To convert_number(From x) {
    if constexpr (is_float<From> && !is_float<To>) {
        const double y = (double)x;
        return to_integer<To>(round == Round::NEAREST ? rint(y) : round == Round::ZERO ? trunc(y)
                              : round == Round::DOWN  ? floor(y) : ceil(y));
    } else {
        return (To)x;
    }
}
template <class To, class From, Round round, class D, class A>
EMU_INLINE void cvt(D& d, const A& a) {
    put(d, convert_number<round, To>(get<From>(a)));
}
template <class T, class D, class A>
EMU_INLINE void cvt_to_small(D& d, const A& a) { put(d, T::from_float(get<float>(a))); }
template <class T, class A>
EMU_INLINE void cvt_from_small(float& d, const A& a) { d = T::to_float(get<uint16_t>(a)); }
// Of a pair the first source is the upper half.
template <class T, bool relu, class D>
EMU_INLINE void cvt_to_pair(D& d, float hi, float lo) {
    if (relu) hi = hi > 0.f ? hi : 0.f, lo = lo > 0.f ? lo : 0.f;
    put(d, (uint32_t)T::from_float(hi) << 16 | T::from_float(lo));
}
template <class D>
EMU_INLINE void cvt_tf32(D& d, float a) { put(d, round_tf32(a)); }
template <int type>
constexpr Float8Form float8_form = type == TYPE_E4M3 ? e4m3_form : e5m2_form;
template <int type, class D>
EMU_INLINE void cvt_to_float8_pair(D& d, float hi, float lo) {
    constexpr Float8Form form = float8_form<type>;
    put(d, (uint16_t)(float_to_float8(hi, form, true) << 8 | float_to_float8(lo, form, true)));
}
template <int type, class D>
EMU_INLINE void cvt_half_to_float8_pair(D& d, uint32_t pair) {
    cvt_to_float8_pair<type>(d, half_to_float((uint16_t)(pair >> 16)), half_to_float((uint16_t)pair));
}
template <int type, class D>
EMU_INLINE void cvt_float8_to_half_pair(D& d, uint16_t pair) {
    constexpr Float8Form form = float8_form<type>;
    put(d, (uint32_t)float_to_half(float8_to_float((uint8_t)(pair >> 8), form)) << 16 |
               float_to_half(float8_to_float((uint8_t)pair, form)));
}

}  // namespace ptx
}  // namespace emu
