// Conversions between element types. Integers may have a binary point, `fix_position`.
#pragma once

#include "vector.h"

namespace emu {

inline void needs_point(const char* name, int line, int position) {
    if (position < -127 || position > 127)
        stop(MISUSE, line, "%s: fix_position has to lie in [-127, 127], not %d", name, position);
}

enum Rounding : uint8_t { TO_EVEN, DOWN, UP, TO_ZERO, AWAY };

inline double rounded(double x, Rounding how) {
    switch (how) {
        case DOWN: return floor(x);
        case UP: return ceil(x);
        case TO_ZERO: return trunc(x);
        case AWAY: return round(x);
        default: return nearbyint(x);
    }
}

// The nearest integer of the type in the given direction; what is too large stays at the end.
template <class T>
T integer_of(double x, Rounding how) {
    const double low = T(-1) < T(0) ? -ldexp(1, 8 * sizeof(T) - 1) : 0;
    const double high = ldexp(1, 8 * sizeof(T) - (T(-1) < T(0) ? 1 : 0)) - 1;
    const double y = rounded(x, how);
    return y != y ? T(0) : y < low ? T(low) : y > high ? T(high) : T(y);
}

template <class T, class S>
void to_integer(const char* name, Line line, T* dst, const S* src, uint64_t count, int position,
                Rounding how) {
    needs_type<S>(name, line.at);
    needs_point(name, line.at, position);
    lanes(name, line, ON_ANY, dst, count,
          [=](S x) { return integer_of<T>(ldexp(double(widen(x)), -position), how); }, src);
}

// `apart`: the source cannot lie where the destination does.
template <class T, class S>
void from_integer(const char* name, Line line, T* dst, const S* src, uint64_t count, int position,
                  Where where) {
    needs_type<T>(name, line.at);
    needs_point(name, line.at, position);
    lanes(name, line, where, dst, count,
          [=](S x) { return static_cast<T>(static_cast<float>(ldexp(double(x), position))); }, src);
}

}  // namespace emu

#define EMU_CONVERT(NAME, FROM, TO, WHERE)                                                    \
    void __bang_##NAME(TO* dst, const FROM* src, unsigned int src_count, EMU_LINE) EMU_BODY({ \
        emu::lanes("__bang_" #NAME, line, emu::WHERE, dst, src_count,                         \
                   [](FROM x) { return static_cast<TO>(static_cast<float>(x)); }, src);       \
    })
EMU_CONVERT(half2float, half, float, APART)
EMU_CONVERT(bfloat162float, bfloat16_t, float, APART)
EMU_CONVERT(float2half_rn, float, half, ON_ANY)
EMU_CONVERT(float2bfloat16_rn, float, bfloat16_t, ON_ANY)
EMU_CONVERT(uchar2float, unsigned char, float, ON_ANY)
EMU_CONVERT(uchar2half, unsigned char, half, APART)

#define EMU_TO_INTEGER(NAME, FROM, TO)                                                         \
    void __bang_##NAME##_tz(TO* dst, const FROM* src, unsigned int n, int fix_position,        \
                            EMU_LINE) EMU_BODY({                                               \
        emu::to_integer("__bang_" #NAME "_tz", line, dst, src, n, fix_position, emu::TO_ZERO); \
    })                                                                                         \
    void __bang_##NAME##_rn(TO* dst, const FROM* src, unsigned int n, int fix_position,        \
                            EMU_LINE) EMU_BODY({                                               \
        emu::to_integer("__bang_" #NAME "_rn", line, dst, src, n, fix_position, emu::TO_EVEN); \
    })                                                                                         \
    void __bang_##NAME##_dn(TO* dst, const FROM* src, unsigned int n, int fix_position,        \
                            EMU_LINE) EMU_BODY({                                               \
        emu::to_integer("__bang_" #NAME "_dn", line, dst, src, n, fix_position, emu::DOWN);    \
    })                                                                                         \
    void __bang_##NAME##_up(TO* dst, const FROM* src, unsigned int n, int fix_position,        \
                            EMU_LINE) EMU_BODY({                                               \
        emu::to_integer("__bang_" #NAME "_up", line, dst, src, n, fix_position, emu::UP);      \
    })                                                                                         \
    void __bang_##NAME##_rd(TO* dst, const FROM* src, unsigned int n, int fix_position,        \
                            EMU_LINE) EMU_BODY({                                               \
        emu::to_integer("__bang_" #NAME "_rd", line, dst, src, n, fix_position, emu::AWAY);    \
    })
EMU_TO_INTEGER(float2int8, float, int8_t)
EMU_TO_INTEGER(float2int16, float, int16_t)
EMU_TO_INTEGER(float2int32, float, int32_t)
EMU_TO_INTEGER(half2int8, half, int8_t)
EMU_TO_INTEGER(half2int16, half, int16_t)

#define EMU_FROM_INTEGER(NAME, FROM, TO, WHERE)                                          \
    void __bang_##NAME(TO* dst, const FROM* src, unsigned int n, int fix_position,       \
                       EMU_LINE) EMU_BODY({                                              \
        emu::from_integer("__bang_" #NAME, line, dst, src, n, fix_position, emu::WHERE); \
    })
EMU_FROM_INTEGER(int82float, int8_t, float, APART)
EMU_FROM_INTEGER(int162float, int16_t, float, APART)
EMU_FROM_INTEGER(int322float_rn, int32_t, float, ON_ANY)
EMU_FROM_INTEGER(int82half, int8_t, half, APART)

#define EMU_TO_UCHAR(NAME, FROM)                                                                 \
    void __bang_##NAME(unsigned char* dst, const FROM* src, unsigned int n, EMU_LINE) EMU_BODY({ \
        emu::to_integer("__bang_" #NAME, line, dst, src, n, 0, emu::TO_ZERO);                    \
    })
EMU_TO_UCHAR(float2uchar_tz, float)
EMU_TO_UCHAR(half2uchar_tz, half)
