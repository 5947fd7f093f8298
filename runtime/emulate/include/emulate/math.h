// Device math: the C library's functions, their float overloads, CUDA's fast and rounded forms.
// A fast form gives the accurate value: its error is the device's business.
#pragma once

#define EMU_MATH1(name)                                    \
    extern "C" double name(double) noexcept;               \
    extern "C" float name##f(float) noexcept;              \
    inline float name(float x) { return name##f(x); }
#define EMU_MATH2(name)                                                \
    extern "C" double name(double, double) noexcept;                   \
    extern "C" float name##f(float, float) noexcept;                   \
    inline float name(float x, float y) { return name##f(x, y); }

EMU_MATH1(exp) EMU_MATH1(exp2) EMU_MATH1(expm1) EMU_MATH1(log) EMU_MATH1(log2) EMU_MATH1(log10)
EMU_MATH1(log1p) EMU_MATH1(sqrt) EMU_MATH1(cbrt) EMU_MATH1(sin) EMU_MATH1(cos) EMU_MATH1(tan)
EMU_MATH1(asin) EMU_MATH1(acos) EMU_MATH1(atan) EMU_MATH1(sinh) EMU_MATH1(cosh) EMU_MATH1(tanh)
EMU_MATH1(asinh) EMU_MATH1(acosh) EMU_MATH1(atanh) EMU_MATH1(erf) EMU_MATH1(erfc) EMU_MATH1(tgamma)
EMU_MATH1(lgamma) EMU_MATH1(floor) EMU_MATH1(ceil) EMU_MATH1(trunc) EMU_MATH1(round) EMU_MATH1(rint)
EMU_MATH1(nearbyint) EMU_MATH1(fabs) EMU_MATH1(logb)
EMU_MATH2(pow) EMU_MATH2(fmod) EMU_MATH2(fmin) EMU_MATH2(fmax) EMU_MATH2(atan2) EMU_MATH2(hypot)
EMU_MATH2(copysign) EMU_MATH2(remainder) EMU_MATH2(fdim) EMU_MATH2(nextafter)
#undef EMU_MATH1
#undef EMU_MATH2

extern "C" {
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double frexp(double, int*) noexcept;
float frexpf(float, int*) noexcept;
double modf(double, double*) noexcept;
float modff(float, float*) noexcept;
int ilogbf(float) noexcept;
long lrintf(float) noexcept;
long lroundf(float) noexcept;
long long llrintf(float) noexcept;
int abs(int) noexcept;
long labs(long) noexcept;
long long llabs(long long) noexcept;
}
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline float ldexp(float x, int n) { return ldexpf(x, n); }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }
inline long abs(long x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }

inline float exp10f(float x) { return powf(10.f, x); }
inline double exp10(double x) { return pow(10., x); }
inline float rsqrtf(float x) { return 1.f / sqrtf(x); }
inline double rsqrt(double x) { return 1. / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.f / cbrtf(x); }
inline float sinpif(float x) { return (float)sin(3.14159265358979323846 * (double)x); }
inline float cospif(float x) { return (float)cos(3.14159265358979323846 * (double)x); }
inline void sincosf(float x, float* s, float* c) {
    *s = sinf(x);
    *c = cosf(x);
}
inline void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
inline float fdividef(float x, float y) { return x / y; }
inline float saturatef(float x) { return x != x ? 0.f : x < 0.f ? 0.f : x > 1.f ? 1.f : x; }
inline float __saturatef(float x) { return saturatef(x); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }

#define EMU_FAST(name, value) \
    inline float name(float x) { return value; }
EMU_FAST(__expf, expf(x)) EMU_FAST(__exp10f, exp10f(x)) EMU_FAST(__logf, logf(x))
EMU_FAST(__log2f, log2f(x)) EMU_FAST(__log10f, log10f(x)) EMU_FAST(__sinf, sinf(x))
EMU_FAST(__cosf, cosf(x)) EMU_FAST(__tanf, tanf(x)) EMU_FAST(__tanhf, tanhf(x))
EMU_FAST(__frcp_rn, 1.f / x) EMU_FAST(__fsqrt_rn, sqrtf(x)) EMU_FAST(__frsqrt_rn, rsqrtf(x))
#undef EMU_FAST
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

#define EMU_CLASSIFY(type)                                              \
    inline bool isnan(type x) { return x != x; }                        \
    inline bool isinf(type x) { return __builtin_isinf(x); }            \
    inline bool isfinite(type x) { return __builtin_isfinite(x); }      \
    inline bool signbit(type x) { return __builtin_signbit(x); }
EMU_CLASSIFY(float)
EMU_CLASSIFY(double)
#undef EMU_CLASSIFY

#define EMU_MIN_MAX(result, a, b)                                               \
    inline result min(a x, b y) { return (result)x < (result)y ? (result)x : (result)y; } \
    inline result max(a x, b y) { return (result)x > (result)y ? (result)x : (result)y; }
EMU_MIN_MAX(int, int, int)
EMU_MIN_MAX(unsigned, unsigned, unsigned)
EMU_MIN_MAX(unsigned, int, unsigned)
EMU_MIN_MAX(unsigned, unsigned, int)
EMU_MIN_MAX(long, long, long)
EMU_MIN_MAX(unsigned long, unsigned long, unsigned long)
EMU_MIN_MAX(unsigned long, long, unsigned long)
EMU_MIN_MAX(unsigned long, unsigned long, long)
EMU_MIN_MAX(long long, long long, long long)
EMU_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
#undef EMU_MIN_MAX
// Floats drop a NaN, as the device does.
inline float min(float x, float y) { return fminf(x, y); }
inline float max(float x, float y) { return fmaxf(x, y); }
inline double min(double x, double y) { return fmin(x, y); }
inline double max(double x, double y) { return fmax(x, y); }
inline double min(float x, double y) { return fmin((double)x, y); }
inline double max(float x, double y) { return fmax((double)x, y); }
inline double min(double x, float y) { return fmin(x, (double)y); }
inline double max(double x, float y) { return fmax(x, (double)y); }
inline int umin(unsigned x, unsigned y) { return (int)(x < y ? x : y); }
inline int umax(unsigned x, unsigned y) { return (int)(x > y ? x : y); }

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
