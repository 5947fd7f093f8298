// Cast between element types; which pair takes which rounding is the documented table of this core.
#pragma once

#include "vector.h"

namespace emu {

constexpr unsigned mode_bit(AscendC::RoundMode m) { return 1u << static_cast<int>(m); }
constexpr unsigned ONLY_NONE = 1, FIVE = 0x3E, FIVE_AND_NONE = FIVE | 1, ALL_MODES = 0x7F;

// The rounding modes of one pair of types as bits; 0 where no instruction exists.
template <class D, class S>
constexpr unsigned cast_modes() {
    if constexpr (one_of<S, int8_t, uint8_t>()) return Same<D, half>::value ? ONLY_NONE : 0;
    if constexpr (Same<S, int16_t>::value)
        return Same<D, half>::value ? FIVE_AND_NONE : Same<D, float>::value ? ONLY_NONE : 0;
    if constexpr (Same<S, half>::value)
        return one_of<D, int8_t, uint8_t>()    ? FIVE_AND_NONE
               : one_of<D, int16_t, int32_t>() ? FIVE
               : Same<D, float>::value         ? ONLY_NONE
                                               : 0;
    if constexpr (Same<S, bfloat16_t>::value)
        return Same<D, int32_t>::value ? FIVE : Same<D, float>::value ? ONLY_NONE : 0;
    if constexpr (Same<S, int32_t>::value)
        return one_of<D, int16_t, int64_t>() ? ONLY_NONE
               : Same<D, float>::value       ? FIVE_AND_NONE
                                             : 0;
    if constexpr (Same<S, float>::value)
        return Same<D, half>::value                                        ? ALL_MODES
               : one_of<D, int16_t, bfloat16_t, int32_t, float, int64_t>() ? FIVE
                                                                           : 0;
    if constexpr (Same<S, int64_t>::value)
        return Same<D, int32_t>::value ? ONLY_NONE : Same<D, float>::value ? FIVE : 0;
    return 0;
}

inline Rounding rounding_of(AscendC::RoundMode mode) {
    using R = AscendC::RoundMode;
    switch (mode) {
        case R::CAST_FLOOR:
            return DOWN;
        case R::CAST_CEIL:
            return UP;
        case R::CAST_ROUND:
            return AWAY;
        case R::CAST_TRUNC:
            return TO_ZERO;
        case R::CAST_ODD:
            return TO_ODD;
        default:
            return TO_EVEN;
    }
}

template <class D>
D saturated(double x) {
    constexpr int bits = 8 * sizeof(D);
    constexpr bool is_signed = D(-1) < D(0);
    if (x != x) return 0;
    double high = ldexp(1.0, is_signed ? bits - 1 : bits), low = is_signed ? -high : 0;
    if (x >= high) return is_signed ? D(~(uint64_t{1} << (bits - 1))) : D(~uint64_t{0});
    if (x < low) return is_signed ? D(uint64_t{1} << (bits - 1)) : D(0);
    return static_cast<D>(x);
}

template <class D, class S>
D converted(S x, Rounding mode) {
    if constexpr (one_of<S, int8_t, uint8_t, int16_t, int32_t, int64_t>() &&
                  one_of<D, int16_t, int32_t, int64_t>()) {
        return saturated<D>(static_cast<double>(x));
    } else {
        double value = static_cast<double>(widen(x));
        if constexpr (Same<D, half>::value) {
            double rounded = mode == TO_EVEN ? value : round_to(value, 10, -14, mode);
            if (mode == TO_EVEN && !Same<S, float>::value) rounded = round_to(value, 10, -14, mode);
            return D(static_cast<float>(rounded));
        } else if constexpr (Same<D, bfloat16_t>::value) {
            return D(static_cast<float>(mode == TO_EVEN ? value : round_to(value, 7, -126, mode)));
        } else if constexpr (Same<D, float>::value) {
            if constexpr (Same<S, float>::value)
                return value - value == 0 ? float(round_integral(value, mode)) : x;
            return static_cast<float>(round_to(value, 23, -126, mode));
        } else {
            return saturated<D>(value - value == 0 ? round_integral(value, mode) : value);
        }
    }
}

template <class D, class S>
void cast(Line line, Lanes lanes, const AscendC::LocalTensor<D>& dst,
          const AscendC::LocalTensor<S>& src, AscendC::RoundMode mode,
          const AscendC::UnaryRepeatParams& p) {
    constexpr unsigned modes = cast_modes<D, S>();
    static const char* const names[] = {"CAST_NONE",  "CAST_RINT",  "CAST_FLOOR", "CAST_CEIL",
                                        "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"};
    if constexpr (Same<S, int32_t>::value && Same<D, half>::value)
        stop(UNSUPPORTED, line.at,
             "Cast from int32_t to half scales by SetDeqScale; go through float");
    if (!modes)
        stop(MISUSE, line.at, "Cast from %s to %s does not exist on this core", TypeName<S>::text,
             TypeName<D>::text);
    if (!(modes & mode_bit(mode)))
        stop(MISUSE, line.at, "Cast from %s to %s does not take %s", TypeName<S>::text,
             TypeName<D>::text, names[static_cast<int>(mode)]);
    if constexpr (modes != 0) {
        Rounding rounding = rounding_of(mode);
        unary("Cast", line, lanes, dst, src, p,
              [rounding](S x) { return converted<D, S>(x, rounding); });
    }
}

}  // namespace emu

namespace AscendC {

template <class T, class U>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
          const uint32_t count, EMU_LINE) {
    emu::cast(line, emu::Lanes::of_count(count, "Cast", line.at), dst, src, roundMode, {});
}
template <class T, class U, bool isSetMask = true>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
          uint64_t mask, int64_t repeatTime, const UnaryRepeatParams& params, EMU_LINE) {
    emu::require_mask(isSetMask, "Cast", line.at);
    constexpr int width = emu::lanes_per_repeat<T, U>();
    emu::cast(line, emu::Lanes::of_mask(mask, repeatTime, width, "Cast", line.at), dst, src,
              roundMode, params);
}
template <class T, class U, bool isSetMask = true>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
          const uint64_t mask[], int64_t repeatTime, const UnaryRepeatParams& params, EMU_LINE) {
    emu::require_mask(isSetMask, "Cast", line.at);
    constexpr int width = emu::lanes_per_repeat<T, U>();
    emu::cast(line, emu::Lanes::of_bits(mask, repeatTime, width, "Cast", line.at), dst, src,
              roundMode, params);
}

}  // namespace AscendC
