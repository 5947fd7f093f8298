// Small floating types of dialects without threads, and what their arithmetic happens in.
#pragma once

#include <stdint.h>

#include "emulate/numbers.h"

// Where a dialect counts what a text reads and writes itself, these are copied as their bits are: an
// argument of a call would be no access that the compiler tells of.
#ifdef EMU_COUNTED_COPIES
#define EMU_READ __attribute__((always_inline))
#define EMU_COPIES(T)                                 \
    EMU_READ T(const T& other) : bits(other.bits) {}  \
    EMU_READ T& operator=(const T& other) {           \
        bits = other.bits;                            \
        return *this;                                 \
    }
#else
#define EMU_READ
#define EMU_COPIES(T)
#endif

struct half {
    uint16_t bits;
    half() = default;
    EMU_COPIES(half)
    half(float x) : bits(emu::float_to_half(x)) {}
    half(double x) : half(static_cast<float>(x)) {}
    half(int x) : half(static_cast<float>(x)) {}
    half(unsigned x) : half(static_cast<float>(x)) {}
    EMU_READ operator float() const { return emu::half_to_float(bits); }
};

// A dialect says before whether its bfloat16_t becomes a float by itself.
#ifndef EMU_BFLOAT_BECOMES_FLOAT
#define EMU_BFLOAT_BECOMES_FLOAT
#endif
struct bfloat16_t {
    uint16_t bits;
    bfloat16_t() = default;
    EMU_COPIES(bfloat16_t)
    bfloat16_t(float x) : bits(emu::float_to_bfloat(x)) {}
    bfloat16_t(double x) : bfloat16_t(static_cast<float>(x)) {}
    bfloat16_t(int x) : bfloat16_t(static_cast<float>(x)) {}
    EMU_READ EMU_BFLOAT_BECOMES_FLOAT operator float() const { return emu::bfloat_to_float(bits); }
};

namespace emu {

template <class A, class B>
struct Same {
    static constexpr bool value = false;
};
template <class A>
struct Same<A, A> {
    static constexpr bool value = true;
};
template <class T, class... Allowed>
constexpr bool one_of() {
    return (Same<T, Allowed>::value || ...);
}

// What arithmetic happens in before it is rounded once to the element type.
template <class T>
struct Wide {
    using type = T;
};
template <>
struct Wide<half> {
    using type = float;
};
template <>
struct Wide<bfloat16_t> {
    using type = float;
};
template <class T>
typename Wide<T>::type widen(T x) {
    return static_cast<typename Wide<T>::type>(x);
}

}  // namespace emu
