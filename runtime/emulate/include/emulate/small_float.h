// A 16-bit floating type, its pair, their operators and the h… functions that both headers share.
// Included once for each type, with EMU_SMALL, EMU_PAIR, EMU_TO_FLOAT and EMU_FROM_FLOAT set.

struct EMU_SMALL {
    unsigned short bits;
    EMU_SMALL() = default;
    EMU_INLINE EMU_SMALL(float x) : bits(EMU_FROM_FLOAT(x)) {}
    EMU_INLINE EMU_SMALL(double x) : bits(EMU_FROM_FLOAT((float)x)) {}
    EMU_INLINE EMU_SMALL(int x) : bits(EMU_FROM_FLOAT((float)x)) {}
    EMU_INLINE EMU_SMALL(unsigned x) : bits(EMU_FROM_FLOAT((float)x)) {}
    EMU_INLINE EMU_SMALL(long x) : bits(EMU_FROM_FLOAT((float)x)) {}
    EMU_INLINE EMU_SMALL(unsigned long x) : bits(EMU_FROM_FLOAT((float)x)) {}
    EMU_INLINE EMU_SMALL(unsigned long long x) : bits(EMU_FROM_FLOAT((float)x)) {}
    EMU_INLINE EMU_SMALL(long long x) : bits(EMU_FROM_FLOAT((float)x)) {}
    EMU_INLINE operator float() const { return EMU_TO_FLOAT(bits); }
#ifdef EMU_SMALL_EXTRA
    EMU_SMALL_EXTRA
#endif
    static EMU_INLINE EMU_SMALL of_bits(unsigned short b) {
        EMU_SMALL x;
        x.bits = b;
        return x;
    }
};

#define EMU_OP(op)                                                                             \
    EMU_INLINE EMU_SMALL operator op(EMU_SMALL a, EMU_SMALL b) { return (float)a op(float) b; } \
    EMU_INLINE EMU_SMALL& operator op##=(EMU_SMALL& a, EMU_SMALL b) { return a = a op b; }
EMU_OP(+)
EMU_OP(-)
EMU_OP(*)
EMU_OP(/)
#undef EMU_OP
EMU_INLINE EMU_SMALL operator-(EMU_SMALL a) { return EMU_SMALL::of_bits((unsigned short)(a.bits ^ 0x8000u)); }
EMU_INLINE EMU_SMALL operator+(EMU_SMALL a) { return a; }
EMU_INLINE EMU_SMALL& operator++(EMU_SMALL& a) { return a = a + EMU_SMALL(1.f); }
EMU_INLINE EMU_SMALL& operator--(EMU_SMALL& a) { return a = a - EMU_SMALL(1.f); }
#define EMU_OP(op) \
    EMU_INLINE bool operator op(EMU_SMALL a, EMU_SMALL b) { return (float)a op(float) b; }
EMU_OP(==)
EMU_OP(!=)
EMU_OP(<)
EMU_OP(>)
EMU_OP(<=)
EMU_OP(>=)
#undef EMU_OP

struct alignas(4) EMU_PAIR {
    EMU_SMALL x, y;
    EMU_PAIR() = default;
    EMU_INLINE EMU_PAIR(EMU_SMALL a, EMU_SMALL b) : x(a), y(b) {}
};
#define EMU_OP(op)                                                                             \
    EMU_INLINE EMU_PAIR operator op(EMU_PAIR a, EMU_PAIR b) { return {a.x op b.x, a.y op b.y}; } \
    EMU_INLINE EMU_PAIR& operator op##=(EMU_PAIR& a, EMU_PAIR b) { return a = a op b; }
EMU_OP(+)
EMU_OP(-)
EMU_OP(*)
EMU_OP(/)
#undef EMU_OP
EMU_INLINE EMU_PAIR operator-(EMU_PAIR a) { return {-a.x, -a.y}; }
EMU_INLINE bool operator==(EMU_PAIR a, EMU_PAIR b) { return a.x == b.x && a.y == b.y; }
EMU_INLINE bool operator!=(EMU_PAIR a, EMU_PAIR b) { return !(a == b); }

// One value and both of a pair; a pair's name has a 2 at its end.
#define EMU_BOTH1(one, two, body)                                          \
    EMU_INLINE EMU_SMALL one(EMU_SMALL a) { return body; }                 \
    EMU_INLINE EMU_PAIR two(EMU_PAIR p) { return {one(p.x), one(p.y)}; }
#define EMU_BOTH2(one, two, body)                                                            \
    EMU_INLINE EMU_SMALL one(EMU_SMALL a, EMU_SMALL b) { return body; }                      \
    EMU_INLINE EMU_PAIR two(EMU_PAIR p, EMU_PAIR q) { return {one(p.x, q.x), one(p.y, q.y)}; }
EMU_BOTH2(__hadd, __hadd2, a + b)
EMU_BOTH2(__hsub, __hsub2, a - b)
EMU_BOTH2(__hmul, __hmul2, a* b)
EMU_BOTH2(__hdiv, __h2div, a / b)
EMU_BOTH2(__hadd_rn, __hadd2_rn, a + b)
EMU_BOTH2(__hsub_rn, __hsub2_rn, a - b)
EMU_BOTH2(__hmul_rn, __hmul2_rn, a* b)
EMU_BOTH2(__hadd_sat, __hadd2_sat, EMU_SMALL(saturatef((float)a + (float)b)))
EMU_BOTH2(__hmul_sat, __hmul2_sat, EMU_SMALL(saturatef((float)a * (float)b)))
EMU_BOTH2(__hmax, __hmax2, EMU_SMALL(fmaxf(a, b)))
EMU_BOTH2(__hmin, __hmin2, EMU_SMALL(fminf(a, b)))
EMU_BOTH2(__hmax_nan, __hmax2_nan, a != a ? a : b != b ? b : EMU_SMALL(fmaxf(a, b)))
EMU_BOTH2(__hmin_nan, __hmin2_nan, a != a ? a : b != b ? b : EMU_SMALL(fminf(a, b)))
EMU_BOTH1(__hneg, __hneg2, -a)
EMU_BOTH1(__habs, __habs2, EMU_SMALL::of_bits((unsigned short)(a.bits & 0x7fffu)))
EMU_BOTH1(hexp, h2exp, EMU_SMALL(expf(a)))
EMU_BOTH1(hexp2, h2exp2, EMU_SMALL(exp2f(a)))
EMU_BOTH1(hexp10, h2exp10, EMU_SMALL(exp10f(a)))
EMU_BOTH1(hlog, h2log, EMU_SMALL(logf(a)))
EMU_BOTH1(hlog2, h2log2, EMU_SMALL(log2f(a)))
EMU_BOTH1(hlog10, h2log10, EMU_SMALL(log10f(a)))
EMU_BOTH1(hsqrt, h2sqrt, EMU_SMALL(sqrtf(a)))
EMU_BOTH1(hrsqrt, h2rsqrt, EMU_SMALL(rsqrtf(a)))
EMU_BOTH1(hrcp, h2rcp, EMU_SMALL(1.f / (float)a))
EMU_BOTH1(hsin, h2sin, EMU_SMALL(sinf(a)))
EMU_BOTH1(hcos, h2cos, EMU_SMALL(cosf(a)))
EMU_BOTH1(htanh, h2tanh, EMU_SMALL(tanhf(a)))
EMU_BOTH1(hfloor, h2floor, EMU_SMALL(floorf(a)))
EMU_BOTH1(hceil, h2ceil, EMU_SMALL(ceilf(a)))
EMU_BOTH1(hrint, h2rint, EMU_SMALL(rintf(a)))
EMU_BOTH1(htrunc, h2trunc, EMU_SMALL(truncf(a)))
#undef EMU_BOTH1
#undef EMU_BOTH2
// The product is exact in double; the sum rounds once more, at the last bit of a double.
EMU_INLINE EMU_SMALL __hfma(EMU_SMALL a, EMU_SMALL b, EMU_SMALL c) {
    return EMU_SMALL((float)((double)(float)a * (double)(float)b + (double)(float)c));
}
EMU_INLINE EMU_SMALL __hfma_relu(EMU_SMALL a, EMU_SMALL b, EMU_SMALL c) {
    return __hmax(__hfma(a, b, c), EMU_SMALL(0.f));
}
EMU_INLINE EMU_PAIR __hfma2(EMU_PAIR a, EMU_PAIR b, EMU_PAIR c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
EMU_INLINE EMU_PAIR __hfma2_relu(EMU_PAIR a, EMU_PAIR b, EMU_PAIR c) {
    return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)};
}

#define EMU_COMPARE(name, op)                                                                \
    EMU_INLINE bool __h##name(EMU_SMALL a, EMU_SMALL b) { return a op b; }                   \
    EMU_INLINE EMU_PAIR __h##name##2(EMU_PAIR a, EMU_PAIR b) {                               \
        return {EMU_SMALL(a.x op b.x ? 1.f : 0.f), EMU_SMALL(a.y op b.y ? 1.f : 0.f)};       \
    }                                                                                        \
    EMU_INLINE bool __hb##name##2(EMU_PAIR a, EMU_PAIR b) { return (a.x op b.x) && (a.y op b.y); }
EMU_COMPARE(eq, ==)
EMU_COMPARE(ne, !=)
EMU_COMPARE(lt, <)
EMU_COMPARE(le, <=)
EMU_COMPARE(gt, >)
EMU_COMPARE(ge, >=)
#undef EMU_COMPARE
EMU_INLINE bool __hisnan(EMU_SMALL a) { return isnan((float)a); }
EMU_INLINE int __hisinf(EMU_SMALL a) { return isinf((float)a) ? ((float)a < 0 ? -1 : 1) : 0; }
EMU_INLINE EMU_PAIR __lowhigh2highlow(EMU_PAIR p) { return {p.y, p.x}; }
EMU_INLINE EMU_SMALL __ldg(const EMU_SMALL* at) { return *at; }

namespace emu {
EMU_ATOMIC_TYPE(EMU_SMALL, EMU_ATOMIC_CODE)
EMU_ATOMIC_TYPE(EMU_PAIR, EMU_ATOMIC_CODE == TYPE_F16 ? TYPE_F16X2 : TYPE_BF16X2)
}  // namespace emu
