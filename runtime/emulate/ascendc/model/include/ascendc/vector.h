// Elementwise vector instructions. Each comes in three forms: `count` elements, a mask of the first
// lanes with repeats, and a mask of bits with repeats.
#pragma once

#include "lanes.h"

namespace emu {

inline void require_mask(bool set, const char* name, int line) {
    if (!set)
        stop(UNSUPPORTED, line, "%s: a mask that SetVectorMask left (isSetMask = false)", name);
}

template <class T, class F>
void binary(const char* name, Line line, Lanes lanes, const AscendC::LocalTensor<T>& d,
            const AscendC::LocalTensor<T>& a, const AscendC::LocalTensor<T>& b,
            const AscendC::BinaryRepeatParams& p, F f, bool accumulates = false) {
    if (lanes.nothing()) return;
    constexpr int width = lanes_per_repeat<T>();
    Operand dst = operand(d, "the destination", name, line.at, p.dstBlkStride, p.dstRepStride);
    Operand first = operand(a, "source 0", name, line.at, p.src0BlkStride, p.src0RepStride);
    Operand second = operand(b, "source 1", name, line.at, p.src1BlkStride, p.src1RepStride);
    bool folds = accumulates && !lanes.counted && (p.dstRepStride == 0 || p.src1RepStride == 0);
    Elementwise<T, T, T> e{name, line, lanes, width, dst, folds};
    e.issue(f, first, second);
}

template <class D, class S, class F>
void unary(const char* name, Line line, Lanes lanes, const AscendC::LocalTensor<D>& d,
           const AscendC::LocalTensor<S>& a, const AscendC::UnaryRepeatParams& p, F f) {
    if (lanes.nothing()) return;
    constexpr int width = lanes_per_repeat<D, S>();
    Operand dst = operand(d, "the destination", name, line.at, p.dstBlkStride, p.dstRepStride);
    Operand src = operand(a, "the source", name, line.at, p.srcBlkStride, p.srcRepStride);
    Elementwise<D, S> e{name, line, lanes, width, dst};
    e.issue(f, src);
}

// dst = f(src, dst)
template <class D, class S, class F>
void updating(const char* name, Line line, Lanes lanes, const AscendC::LocalTensor<D>& d,
              const AscendC::LocalTensor<S>& a, const AscendC::UnaryRepeatParams& p, F f) {
    if (lanes.nothing()) return;
    constexpr int width = lanes_per_repeat<D, S>();
    Operand dst = operand(d, "the destination", name, line.at, p.dstBlkStride, p.dstRepStride);
    Operand src = operand(a, "the source", name, line.at, p.srcBlkStride, p.srcRepStride);
    Elementwise<D, S, D> e{name, line, lanes, width, dst};
    e.issue(f, src, dst);
}

}  // namespace emu

namespace AscendC {


#define EMU_BINARY(NAME, EXPRESSION, FOLDS, ...)                                                   \
    namespace detail {                                                                             \
    template <class T>                                                                             \
    void NAME(emu::Line line, emu::Lanes lanes, const LocalTensor<T>& d, const LocalTensor<T>& s0, \
              const LocalTensor<T>& s1, const BinaryRepeatParams& p) {                             \
        emu::require_type<T, __VA_ARGS__>(#NAME, line.at);                                         \
        if constexpr (emu::one_of<T, __VA_ARGS__>())                                               \
            emu::binary(                                                                           \
                #NAME, line, lanes, d, s0, s1, p,                                                  \
                [](T x, T y) {                                                                     \
                    auto a = emu::widen(x), b = emu::widen(y);                                     \
                    return T(EXPRESSION);                                                          \
                },                                                                                 \
                FOLDS);                                                                            \
    }                                                                                              \
    }                                                                                              \
    template <class T>                                                                             \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,   \
              const int32_t& count, EMU_LINE) {                                                    \
        detail::NAME(line, emu::Lanes::of_count(count, #NAME, line.at), dst, src0, src1, {});      \
    }                                                                                              \
    template <class T, bool isSetMask = true>                                                      \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,   \
              uint64_t mask, int64_t repeatTime, const BinaryRepeatParams& params, EMU_LINE) {     \
        emu::require_mask(isSetMask, #NAME, line.at);                                              \
        detail::NAME(line, emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), #NAME, line.at), \
                     dst, src0, src1, params);                                                     \
    }                                                                                              \
    template <class T, bool isSetMask = true>                                                      \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,   \
              const uint64_t mask[], int64_t repeatTime, const BinaryRepeatParams& params,         \
              EMU_LINE) {                                                                          \
        emu::require_mask(isSetMask, #NAME, line.at);                                              \
        detail::NAME(line, emu::Lanes::of_bits(mask, repeatTime, 256 / sizeof(T), #NAME, line.at), \
                     dst, src0, src1, params);                                                     \
    }

EMU_BINARY(Add, a + b, true, half, float, int16_t, int32_t)
EMU_BINARY(Sub, a - b, true, half, float, int16_t, int32_t)
EMU_BINARY(Mul, a* b, true, half, float, int16_t, int32_t)
EMU_BINARY(Div, a / b, false, half, float)
EMU_BINARY(Max, a > b ? a : b, true, half, float, int16_t, int32_t)
EMU_BINARY(Min, a < b ? a : b, true, half, float, int16_t, int32_t)
EMU_BINARY(And, a& b, false, int16_t, uint16_t)
EMU_BINARY(Or, a | b, false, int16_t, uint16_t)
EMU_BINARY(AddRelu, a + b > 0 ? a + b : 0, true, half, float, int16_t)
EMU_BINARY(SubRelu, a - b > 0 ? a - b : 0, true, half, float, int16_t)

// Instructions of one source; SCALAR adds `const T& scalarValue` before the count, as `c` in the
// expression.
#define EMU_UNARY(NAME, EXPRESSION, ...)                                                           \
    namespace detail {                                                                             \
    template <class T>                                                                             \
    void NAME(emu::Line line, emu::Lanes lanes, const LocalTensor<T>& d, const LocalTensor<T>& s,  \
              const UnaryRepeatParams& p) {                                                        \
        emu::require_type<T, __VA_ARGS__>(#NAME, line.at);                                         \
        if constexpr (emu::one_of<T, __VA_ARGS__>())                                               \
            emu::unary(#NAME, line, lanes, d, s, p, [](T x) {                                      \
                auto a = emu::widen(x);                                                            \
                return T(EXPRESSION);                                                              \
            });                                                                                    \
    }                                                                                              \
    }                                                                                              \
    template <class T>                                                                             \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count,          \
              EMU_LINE) {                                                                          \
        detail::NAME(line, emu::Lanes::of_count(count, #NAME, line.at), dst, src, {});             \
    }                                                                                              \
    template <class T, bool isSetMask = true>                                                      \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask,                 \
              int64_t repeatTime, const UnaryRepeatParams& params, EMU_LINE) {                     \
        emu::require_mask(isSetMask, #NAME, line.at);                                              \
        detail::NAME(line, emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), #NAME, line.at), \
                     dst, src, params);                                                            \
    }                                                                                              \
    template <class T, bool isSetMask = true>                                                      \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[],         \
              int64_t repeatTime, const UnaryRepeatParams& params, EMU_LINE) {                     \
        emu::require_mask(isSetMask, #NAME, line.at);                                              \
        detail::NAME(line, emu::Lanes::of_bits(mask, repeatTime, 256 / sizeof(T), #NAME, line.at), \
                     dst, src, params);                                                            \
    }

EMU_UNARY(Exp, expf(a), half, float)
EMU_UNARY(Ln, logf(a), half, float)
EMU_UNARY(Abs, a < 0 ? -a : a + 0, half, float)
EMU_UNARY(Sqrt, sqrtf(a), half, float)
EMU_UNARY(Rsqrt, 1 / sqrtf(a), half, float)
EMU_UNARY(Reciprocal, 1 / a, half, float)
EMU_UNARY(Relu, a > 0 ? a : 0, half, float, int32_t)
EMU_UNARY(Not, ~a, int16_t, uint16_t)

#define EMU_SCALAR(NAME, HELPER, LAMBDA, ...)                                                      \
    namespace detail {                                                                             \
    template <class T>                                                                             \
    void NAME(emu::Line line, emu::Lanes lanes, const LocalTensor<T>& d, const LocalTensor<T>& s,  \
              T scalar, const UnaryRepeatParams& p) {                                              \
        emu::require_type<T, __VA_ARGS__>(#NAME, line.at);                                         \
        if constexpr (emu::one_of<T, __VA_ARGS__>()) {                                             \
            auto c = emu::widen(scalar);                                                           \
            emu::HELPER(#NAME, line, lanes, d, s, p, LAMBDA);                                      \
        }                                                                                          \
    }                                                                                              \
    }                                                                                              \
    template <class T>                                                                             \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,          \
              const int32_t& count, EMU_LINE) {                                                    \
        detail::NAME(line, emu::Lanes::of_count(count, #NAME, line.at), dst, src, scalarValue,     \
                     {});                                                                          \
    }                                                                                              \
    template <class T, bool isSetMask = true>                                                      \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,          \
              uint64_t mask, int64_t repeatTime, const UnaryRepeatParams& params, EMU_LINE) {      \
        emu::require_mask(isSetMask, #NAME, line.at);                                              \
        detail::NAME(line, emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), #NAME, line.at), \
                     dst, src, scalarValue, params);                                               \
    }                                                                                              \
    template <class T, bool isSetMask = true>                                                      \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,          \
              const uint64_t mask[], int64_t repeatTime, const UnaryRepeatParams& params,          \
              EMU_LINE) {                                                                          \
        emu::require_mask(isSetMask, #NAME, line.at);                                              \
        detail::NAME(line, emu::Lanes::of_bits(mask, repeatTime, 256 / sizeof(T), #NAME, line.at), \
                     dst, src, scalarValue, params);                                               \
    }
#define EMU_ONE(EXPRESSION)     \
    [c](T x) {                  \
        auto a = emu::widen(x); \
        return T(EXPRESSION);   \
    }

EMU_SCALAR(Adds, unary, EMU_ONE(a + c), half, float, int16_t, int32_t)
EMU_SCALAR(Muls, unary, EMU_ONE(a* c), half, float, int16_t, int32_t)
EMU_SCALAR(Maxs, unary, EMU_ONE(a > c ? a : c), half, float, int16_t, int32_t)
EMU_SCALAR(Mins, unary, EMU_ONE(a < c ? a : c), half, float, int16_t, int32_t)
EMU_SCALAR(LeakyRelu, unary, EMU_ONE(a >= 0 ? a : a * c), half, float)
EMU_SCALAR(ShiftLeft, unary, EMU_ONE(a << c), int16_t, uint16_t, int32_t, uint32_t)
EMU_SCALAR(ShiftRight, unary, EMU_ONE(a >> c), int16_t, uint16_t, int32_t, uint32_t)
#undef EMU_ONE

// dst += src * scalar; half sources may be added to a float destination.
namespace detail {
template <class T, class U>
void axpy(emu::Line line, emu::Lanes lanes, const LocalTensor<T>& d, const LocalTensor<U>& s,
          U scalar, const UnaryRepeatParams& p) {
    emu::require_type<U, half, float>("Axpy", line.at);
    emu::require_type<T, U, float>("Axpy", line.at);
    if constexpr (emu::one_of<U, half, float>() && emu::one_of<T, U, float>()) {
        float c = scalar;
        emu::updating("Axpy", line, lanes, d, s, p,
                      [c](U x, T old) { return T(float(x) * c + float(old)); });
    }
}
}  // namespace detail
template <class T, class U>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue,
          const int32_t& count, EMU_LINE) {
    detail::axpy(line, emu::Lanes::of_count(count, "Axpy", line.at), dst, src, scalarValue, {});
}
template <class T, class U, bool isSetMask = true>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, uint64_t mask,
          int64_t repeatTime, const UnaryRepeatParams& params, EMU_LINE) {
    emu::require_mask(isSetMask, "Axpy", line.at);
    detail::axpy(line, emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), "Axpy", line.at), dst,
                 src, scalarValue, params);
}

// dst += src0 * src1
template <class T, class U>
void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,
               const int32_t& count, EMU_LINE) {
    const char* name = "MulAddDst";
    emu::require_type<U, half, float>(name, line.at);
    emu::require_type<T, U, float>(name, line.at);
    emu::Lanes lanes = emu::Lanes::of_count(count, name, line.at);
    emu::Operand d = emu::operand(dst, "the destination", name, line.at);
    emu::Elementwise<T, U, U, T> e{name, line, lanes, emu::lanes_per_repeat<T, U>(), d};
    e.issue([](U a, U b, T old) { return T(float(a) * float(b) + float(old)); },
            emu::operand(src0, "source 0", name, line.at),
            emu::operand(src1, "source 1", name, line.at), d);
}

// Fills
namespace detail {
template <class T>
void duplicate(emu::Line line, emu::Lanes lanes, const LocalTensor<T>& dst, T value,
               int block_stride, int repeat_stride) {
    emu::require_type<T, half, bfloat16_t, float, int16_t, uint16_t, int32_t, uint32_t>("Duplicate",
                                                                                        line.at);
    if (lanes.nothing()) return;
    emu::Operand d =
        emu::operand(dst, "the destination", "Duplicate", line.at, block_stride, repeat_stride);
    emu::Elementwise<T> e{"Duplicate", line, lanes, emu::lanes_per_repeat<T>(), d};
    e.issue([value] { return value; });
}
}  // namespace detail
template <class T>
void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, const int32_t& count, EMU_LINE) {
    detail::duplicate(line, emu::Lanes::of_count(count, "Duplicate", line.at), dst, scalarValue, 1,
                      8);
}
template <class T, bool isSetMask = true>
void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, uint64_t mask, int64_t repeatTime,
               uint16_t dstBlockStride, uint8_t dstRepeatStride, EMU_LINE) {
    emu::require_mask(isSetMask, "Duplicate", line.at);
    detail::duplicate(line,
                      emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), "Duplicate", line.at),
                      dst, scalarValue, dstBlockStride, dstRepeatStride);
}
template <class T, bool isSetMask = true>
void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, const uint64_t mask[],
               int64_t repeatTime, uint16_t dstBlockStride, uint8_t dstRepeatStride, EMU_LINE) {
    emu::require_mask(isSetMask, "Duplicate", line.at);
    detail::duplicate(line,
                      emu::Lanes::of_bits(mask, repeatTime, 256 / sizeof(T), "Duplicate", line.at),
                      dst, scalarValue, dstBlockStride, dstRepeatStride);
}

// dst[i] = first + i * step
template <class T>
void ArithProgression(const LocalTensor<T>& dst, const T first, const T step, const int32_t count,
                      EMU_LINE) {
    const char* name = "ArithProgression";
    emu::require_type<T, half, float, int16_t, int32_t>(name, line.at);
    if (count <= 0) return;
    emu::operand(dst, "the destination", name, line.at);
    emu::Issue op(name, emu::V, line);
    op.write(emu::UB, dst.address, uint64_t(count) * sizeof(T));
    uint64_t to = dst.address;
    op.commit([=] {
        for (int32_t i = 0; i < count; ++i)
            emu::store<T>(emu::UB, to + i * sizeof(T), T(emu::widen(first) + i * emu::widen(step)),
                          0);
    });
}
template <class T>
void CreateVecIndex(LocalTensor<T> dst, const T& first, uint32_t count, EMU_LINE) {
    ArithProgression<T>(dst, first, T(1), static_cast<int32_t>(count), line);
}

// Eight elements a repeat, each filling one 32-byte block.
template <class T>
void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t repeatTime,
          const BrcbRepeatParams& p, EMU_LINE) {
    const char* name = "Brcb";
    emu::require_type<T, half, bfloat16_t, float, int16_t, uint16_t, int32_t, uint32_t>(name,
                                                                                        line.at);
    int repeats = emu::Lanes::checked_repeats(repeatTime, name, line.at);
    if (!repeats) return;
    emu::operand(dst, "the destination", name, line.at);
    emu::operand(src, "the source", name, line.at);
    uint64_t block = p.dstBlkStride ? p.dstBlkStride : 1, repeat = p.dstRepStride;
    uint64_t to = dst.address, from = src.address;
    emu::Issue op(name, emu::V, line);
    op.read(emu::UB, from, uint64_t(repeats) * 8 * sizeof(T));
    for (int r = 0; r < repeats; ++r)
        for (int b = 0; b < 8; ++b) op.write(emu::UB, to + 32 * (r * repeat + b * block), 32);
    op.commit([=] {
        for (int r = 0; r < repeats; ++r)
            for (int b = 0; b < 8; ++b) {
                emu::Origin origin = 0;
                T value =
                    emu::load<T>(emu::UB, from + (r * 8 + b) * sizeof(T), name, line.at, origin);
                for (uint64_t i = 0; i < 32; i += sizeof(T))
                    emu::store<T>(emu::UB, to + 32 * (r * repeat + b * block) + i, value, origin);
            }
    });
}

// UB to UB in the repeated form.
template <class T, bool isSetMask = true>
void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask, int64_t repeatTime,
          const UnaryRepeatParams& params, EMU_LINE) {
    emu::require_mask(isSetMask, "Copy", line.at);
    emu::unary("Copy", line,
               emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), "Copy", line.at), dst, src,
               params, [](T x) { return x; });
}

}  // namespace AscendC
