// Vector calls: all operands in NRAM, any address and any count greater than 0. A lane's result is
// rounded once to the element type; a lane computed from what nothing wrote counts as not written.
#pragma once

#include "types.h"

namespace emu {

// Where a destination may lie: apart from all sources, on the first one, or on any.
enum Where : uint8_t { APART, ON_FIRST, ON_ANY };

template <class T, class F, class... S>
void lanes(const char* name, Line line, Where where, T* dst, uint64_t count, F f, const S*... src) {
    needs_count(name, line.at, count, "the number of elements");
    Instruction instruction(name, COMPUTE, line);
    int place = 0;
    auto operand = [&](const auto* at) {
        static const char* const words[] = {"source 0", "source 1", "source 2"};
        const uint64_t bytes = count * sizeof *at;
        instruction.read(NRAM, at, bytes, words[place]);
        const bool allowed = where == ON_ANY || (where == ON_FIRST && place == 0);
        check_overlap(name, line.at, dst, count * sizeof(T), at, bytes, allowed, words[place]);
        ++place;
    };
    (operand(src), ...);
    instruction.write(NRAM, dst, count * sizeof(T), "the destination");
    instruction.issue([=] {
        for (uint64_t i = 0; i < count; ++i) {
            bool bad = false;
            const T value = static_cast<T>(f(load(src + i, bad)...));
            store(dst + i, value, bad);
        }
    });
}

// src_elem_count elements in parts of seg_elem_count, each with the segment.
template <class T, class F>
void cycle(const char* name, Line line, T* dst, const T* src, const T* seg, uint64_t count,
           uint64_t part, F f) {
    needs_type<T>(name, line.at);
    needs_count(name, line.at, count, "src_elem_count");
    needs_count(name, line.at, part, "seg_elem_count");
    if (count % part)
        stop(MISUSE, line.at, "%s: %llu elements are no multiple of the segment's %llu", name,
             static_cast<unsigned long long>(count), static_cast<unsigned long long>(part));
    Instruction instruction(name, COMPUTE, line);
    instruction.read(NRAM, src, count * sizeof(T), "src");
    instruction.read(NRAM, seg, part * sizeof(T), "seg");
    check_overlap(name, line.at, dst, count * sizeof(T), src, count * sizeof(T), true, "src");
    check_overlap(name, line.at, dst, count * sizeof(T), seg, part * sizeof(T), false, "seg");
    instruction.write(NRAM, dst, count * sizeof(T), "dst");
    instruction.issue([=] {
        for (uint64_t i = 0; i < count; ++i) {
            bool bad = false;
            const T a = load(src + i, bad), b = load(seg + i % part, bad);
            store(dst + i, static_cast<T>(f(a, b)), bad);
        }
    });
}

}  // namespace emu

// An operation of two vectors, of a vector and a number, and with a segment that repeats.
#define EMU_BINARY(TYPE, NAME, EXPRESSION, WHERE)                                         \
    void __bang_##NAME(TYPE* dst, const TYPE* src0, const TYPE* src1, unsigned int count, \
                       EMU_LINE) EMU_BODY({                                               \
        emu::needs_type<TYPE>("__bang_" #NAME, line.at);                                  \
        emu::lanes("__bang_" #NAME, line, emu::WHERE, dst, count,                         \
                   [](TYPE x, TYPE y) {                                                   \
                       const auto a = emu::widen(x), b = emu::widen(y);                   \
                       return EXPRESSION;                                                 \
                   },                                                                     \
                   src0, src1);                                                           \
    })
#define EMU_SCALAR(TYPE, NAME, EXPRESSION)                                         \
    void __bang_##NAME(TYPE* dst, const TYPE* src, TYPE value, unsigned int count, \
                       EMU_LINE) EMU_BODY({                                        \
        emu::needs_type<TYPE>("__bang_" #NAME, line.at);                           \
        const auto b = emu::widen(value);                                          \
        emu::lanes("__bang_" #NAME, line, emu::ON_ANY, dst, count,                 \
                   [b](TYPE x) {                                                   \
                       const auto a = emu::widen(x);                               \
                       return EXPRESSION;                                          \
                   },                                                              \
                   src);                                                           \
    })
#define EMU_CYCLE(TYPE, NAME, EXPRESSION)                                                      \
    void __bang_cycle_##NAME(TYPE* dst, const TYPE* src, const TYPE* seg,                      \
                             unsigned int src_elem_count, unsigned int seg_elem_count,         \
                             EMU_LINE) EMU_BODY({                                              \
        emu::cycle("__bang_cycle_" #NAME, line, dst, src, seg, src_elem_count, seg_elem_count, \
                   [](TYPE x, TYPE y) {                                                        \
                       const auto a = emu::widen(x), b = emu::widen(y);                        \
                       return EXPRESSION;                                                      \
                   });                                                                         \
    })
#define EMU_UNARY(TYPE, NAME, EXPRESSION, WHERE)                                            \
    void __bang_##NAME(TYPE* dst, const TYPE* src, unsigned int count, EMU_LINE) EMU_BODY({ \
        emu::needs_type<TYPE>("__bang_" #NAME, line.at);                                    \
        emu::lanes("__bang_" #NAME, line, emu::WHERE, dst, count,                           \
                   [](TYPE x) {                                                             \
                       const auto a = emu::widen(x);                                        \
                       return EXPRESSION;                                                   \
                   },                                                                       \
                   src);                                                                    \
    })

// Of a NaN and a number the maximum is what stands in the first source.
#define EMU_MAX (b > a ? b : a)
#define EMU_MIN (b < a ? b : a)
#define EMU_ARITHMETIC(TYPE)                      \
    EMU_BINARY(TYPE, add, a + b, ON_ANY)          \
    EMU_BINARY(TYPE, sub, a - b, ON_ANY)          \
    EMU_BINARY(TYPE, mul, a* b, ON_ANY)           \
    EMU_BINARY(TYPE, maxequal, EMU_MAX, ON_FIRST) \
    EMU_BINARY(TYPE, minequal, EMU_MIN, ON_FIRST) \
    EMU_SCALAR(TYPE, add_scalar, a + b)           \
    EMU_SCALAR(TYPE, sub_scalar, a - b)           \
    EMU_SCALAR(TYPE, mul_scalar, a* b)            \
    EMU_SCALAR(TYPE, maxeq_scalar, EMU_MAX)       \
    EMU_SCALAR(TYPE, mineq_scalar, EMU_MIN)       \
    EMU_CYCLE(TYPE, add, a + b)                   \
    EMU_CYCLE(TYPE, sub, a - b)                   \
    EMU_CYCLE(TYPE, mul, a* b)                    \
    EMU_CYCLE(TYPE, maxequal, EMU_MAX)            \
    EMU_CYCLE(TYPE, minequal, EMU_MIN)            \
    EMU_UNARY(TYPE, abs, a < 0 ? -a : a + 0, ON_ANY) \
    EMU_UNARY(TYPE, relu, a > 0 ? a : 0, ON_ANY)
EMU_ARITHMETIC(half)
EMU_ARITHMETIC(bfloat16_t)
EMU_ARITHMETIC(float)
EMU_ARITHMETIC(char)
EMU_ARITHMETIC(short)
EMU_ARITHMETIC(int)

// 1 where it holds, 0 where not, in the operands' type.
#define EMU_COMPARE(TYPE, NAME, OP)                    \
    EMU_BINARY(TYPE, NAME, a OP b ? 1 : 0, ON_ANY)     \
    EMU_CYCLE(TYPE, NAME, a OP b ? 1 : 0)
#define EMU_COMPARISONS(TYPE)   \
    EMU_COMPARE(TYPE, lt, <)    \
    EMU_COMPARE(TYPE, le, <=)   \
    EMU_COMPARE(TYPE, gt, >)    \
    EMU_COMPARE(TYPE, ge, >=)   \
    EMU_COMPARE(TYPE, eq, ==)   \
    EMU_COMPARE(TYPE, ne, !=)
#define EMU_COMPARE_NUMBER(TYPE)                   \
    EMU_SCALAR(TYPE, lt_scalar, a < b ? 1 : 0)     \
    EMU_SCALAR(TYPE, le_scalar, a <= b ? 1 : 0)    \
    EMU_SCALAR(TYPE, gt_scalar, a > b ? 1 : 0)     \
    EMU_SCALAR(TYPE, ge_scalar, a >= b ? 1 : 0)    \
    EMU_SCALAR(TYPE, eq_scalar, a == b ? 1 : 0)    \
    EMU_SCALAR(TYPE, ne_scalar, a != b ? 1 : 0)
EMU_COMPARISONS(half)
EMU_COMPARISONS(bfloat16_t)
EMU_COMPARISONS(float)
// Integers have four of the six.
#define EMU_COMPARE_INTEGERS(TYPE)                  \
    EMU_BINARY(TYPE, lt, a < b ? 1 : 0, ON_ANY)     \
    EMU_BINARY(TYPE, ge, a >= b ? 1 : 0, ON_ANY)    \
    EMU_BINARY(TYPE, eq, a == b ? 1 : 0, ON_ANY)    \
    EMU_BINARY(TYPE, ne, a != b ? 1 : 0, ON_ANY)    \
    EMU_SCALAR(TYPE, lt_scalar, a < b ? 1 : 0)      \
    EMU_SCALAR(TYPE, ge_scalar, a >= b ? 1 : 0)     \
    EMU_SCALAR(TYPE, ne_scalar, a != b ? 1 : 0)     \
    EMU_SCALAR(TYPE, eq_scalar, a == b ? 1 : 0)
EMU_COMPARE_INTEGERS(char)
EMU_COMPARE_INTEGERS(short)
EMU_COMPARE_INTEGERS(int)
EMU_COMPARE_NUMBER(half)
EMU_COMPARE_NUMBER(bfloat16_t)
EMU_COMPARE_NUMBER(float)

#define EMU_LOGIC(TYPE)                                     \
    EMU_BINARY(TYPE, and, a != 0 && b != 0 ? 1 : 0, ON_FIRST) \
    EMU_BINARY(TYPE, or, a != 0 || b != 0 ? 1 : 0, ON_FIRST)
EMU_LOGIC(half)
EMU_LOGIC(float)
EMU_LOGIC(char)
EMU_LOGIC(short)
EMU_LOGIC(int)

#define EMU_FUNCTIONS(TYPE)                             \
    EMU_UNARY(TYPE, sqrt, sqrtf(a), ON_ANY)             \
    EMU_UNARY(TYPE, rsqrt, 1 / sqrtf(a), ON_ANY)        \
    EMU_UNARY(TYPE, recip, 1 / a, ON_ANY)               \
    EMU_UNARY(TYPE, pow2, exp2f(a), ON_ANY)             \
    EMU_UNARY(TYPE, log, log2f(a), ON_ANY)              \
    EMU_UNARY(TYPE, sin, sinf(a), ON_ANY)               \
    EMU_UNARY(TYPE, cos, cosf(a), ON_ANY)
EMU_FUNCTIONS(float)
EMU_FUNCTIONS(bfloat16_t)
EMU_UNARY(float, floor, floorf(a), APART)
EMU_UNARY(float, nearbyint, nearbyintf(a), APART)
EMU_UNARY(float, round, roundf(a), APART)
#define EMU_SQUARE(TYPE) EMU_UNARY(TYPE, square, a* a, ON_ANY) EMU_UNARY(TYPE, neg, -a, ON_ANY)
EMU_SQUARE(half)
EMU_SQUARE(bfloat16_t)
EMU_SQUARE(float)

namespace emu {
inline void needs_arch(const char* name, int line, bool there) {
    if (!there) stop(MISUSE, line, "%s does not exist on mtp_%d", name, module.arch);
}
}  // namespace emu

#define EMU_DIVIDE(TYPE)                                                                      \
    void __bang_div(TYPE* dst, const TYPE* src0, const TYPE* src1, unsigned int count,        \
                    EMU_LINE) EMU_BODY({                                                      \
        emu::needs_arch("__bang_div", line.at, emu::module.arch != 372);                      \
        emu::lanes("__bang_div", line, emu::ON_ANY, dst, count,                               \
                   [](TYPE a, TYPE b) { return emu::widen(a) / emu::widen(b); }, src0, src1); \
    })                                                                                        \
    void __bang_div(TYPE* dst, const TYPE* src0, TYPE src1, unsigned int count,               \
                    EMU_LINE) EMU_BODY({                                                      \
        emu::needs_arch("__bang_div", line.at, emu::module.arch != 372);                      \
        const auto b = emu::widen(src1);                                                      \
        emu::lanes("__bang_div", line, emu::ON_ANY, dst, count,                               \
                   [b](TYPE a) { return emu::widen(a) / b; }, src0);                          \
    })
EMU_DIVIDE(half)
EMU_DIVIDE(bfloat16_t)
EMU_DIVIDE(float)

// Bits, over bytes.
#define EMU_BITS(NAME, EXPRESSION)                                                            \
    void __bang_##NAME(char* dst, const char* src0, const char* src1, unsigned int count,     \
                       EMU_LINE) EMU_BODY({                                                   \
        emu::lanes("__bang_" #NAME, line, emu::ON_FIRST, dst, count,                          \
                   [](char a, char b) { return static_cast<char>(EXPRESSION); }, src0, src1); \
    })
EMU_BITS(band, a& b)
EMU_BITS(bor, a | b)
EMU_BITS(bxor, a ^ b)
void __bang_bnot(char* dst, const char* src, unsigned int count, EMU_LINE) EMU_BODY({
    emu::lanes("__bang_bnot", line, emu::ON_ANY, dst, count,
               [](char a) { return static_cast<char>(~a); }, src);
})

// Fills
namespace emu {
template <class T>
void fill(const char* name, Line line, void* dst, uint64_t count, T value) {
    needs_type<T>(name, line.at);
    lanes(name, line, APART, static_cast<T*>(dst), count, [value] { return value; });
}
}  // namespace emu
#define EMU_FILL(TYPE)                                                                      \
    void __bang_write_value(void* dst, unsigned int count, TYPE value, EMU_LINE) EMU_BODY({ \
        emu::fill("__bang_write_value", line, dst, count, value);                           \
    })
#define EMU_ZERO(TYPE)                                                         \
    void __bang_write_zero(TYPE* dst, unsigned int count, EMU_LINE) EMU_BODY({ \
        emu::fill("__bang_write_zero", line, dst, count, (TYPE)0);             \
    })
EMU_FILL(char)
EMU_FILL(short)
EMU_FILL(int)
EMU_FILL(half)
EMU_FILL(bfloat16_t)
EMU_FILL(float)
EMU_ZERO(signed char)
EMU_ZERO(unsigned char)
EMU_ZERO(short)
EMU_ZERO(unsigned short)
EMU_ZERO(int)
EMU_ZERO(unsigned int)
EMU_ZERO(half)
EMU_ZERO(bfloat16_t)
EMU_ZERO(float)

// dst[w][h] = src[h][w]
namespace emu {
template <class T>
void transpose(const char* name, Line line, T* dst, const T* src, uint64_t height, uint64_t width) {
    needs_type<T>(name, line.at);
    needs_count(name, line.at, height, "the height");
    needs_count(name, line.at, width, "the width");
    const uint64_t bytes = height * width * sizeof(T);
    Instruction instruction(name, COMPUTE, line);
    instruction.read(NRAM, src, bytes, "src");
    check_overlap(name, line.at, dst, bytes, src, bytes, false, "src");
    instruction.write(NRAM, dst, bytes, "dst");
    instruction.issue([=] {
        for (uint64_t h = 0; h < height; ++h)
            for (uint64_t w = 0; w < width; ++w) {
                bool bad = false;
                const T value = load(src + h * width + w, bad);
                store(dst + w * height + h, value, bad);
            }
    });
}
}  // namespace emu
#define EMU_TRANSPOSE(TYPE)                                                \
    void __bang_transpose(TYPE* dst, const TYPE* src, unsigned int height, \
                          unsigned int width, EMU_LINE) EMU_BODY({         \
        emu::transpose("__bang_transpose", line, dst, src, height, width); \
    })
EMU_TRANSPOSE(half)
EMU_TRANSPOSE(bfloat16_t)
EMU_TRANSPOSE(float)
EMU_TRANSPOSE(int8_t)
EMU_TRANSPOSE(char)
EMU_TRANSPOSE(unsigned char)
EMU_TRANSPOSE(short)
EMU_TRANSPOSE(unsigned short)
EMU_TRANSPOSE(int)
EMU_TRANSPOSE(unsigned int)

// A value and the place of the first greatest (least) element that is no NaN.
namespace emu {
template <class T>
void arg(const char* name, Line line, T* dst, const T* src, uint64_t count, bool greatest) {
    needs_type<T>(name, line.at);
    needs_count(name, line.at, count, "the number of elements");
    Instruction instruction(name, COMPUTE, line);
    instruction.read(NRAM, src, count * sizeof(T), "src");
    instruction.write(NRAM, dst, sizeof(T) + (sizeof(T) < 4 ? 6 : 4), "dst");
    instruction.issue([=] {
        bool bad = false;
        uint32_t best = 0;
        T value = load(src, bad);
        for (uint32_t i = 1; i < count; ++i) {
            const T one = load(src + i, bad);
            const float a = widen(one), b = widen(value);
            if (greatest ? a > b : a < b) value = one, best = i;
        }
        store(dst, value, bad);
        char* place = reinterpret_cast<char*>(dst) + (sizeof(T) < 4 ? 4 : sizeof(T));
        memcpy(place, &best, 4);
        mark_written(place, 4, bad);
    });
}
}  // namespace emu
#define EMU_ARG(TYPE)                                                                       \
    void __bang_argmax(TYPE* dst, const TYPE* src, unsigned int count, EMU_LINE) EMU_BODY({ \
        emu::arg("__bang_argmax", line, dst, src, count, true);                             \
    })                                                                                      \
    void __bang_argmin(TYPE* dst, const TYPE* src, unsigned int count, EMU_LINE) EMU_BODY({ \
        emu::arg("__bang_argmin", line, dst, src, count, false);                            \
    })
EMU_ARG(float)

// Adds elements to global memory, each in one step, so that several cores may do so.
namespace emu {
template <class T>
void atomic_add(const char* name, Line line, T* dst, const T* src, uint64_t size) {
    needs_type<T>(name, line.at);
    needs_count(name, line.at, size, "size");
    if (reinterpret_cast<uintptr_t>(dst) % sizeof(T))
        stop(MISUSE, line.at, "%s: the address is no multiple of %zu bytes", name, sizeof(T));
    Instruction instruction(name, IO, line, PLAIN);
    instruction.read(NRAM, src, size * sizeof(T), "src");
    instruction.add(dst, size * sizeof(T), "dst");
    instruction.issue([=] {
        leaves(src, size * sizeof(T), name, line.at);
        for (uint64_t i = 0; i < size; ++i) dst[i] = static_cast<T>(widen(dst[i]) + widen(src[i]));
    });
}
}  // namespace emu
#define EMU_ATOMIC_ADD(TYPE)                                                     \
    void __bang_atomic_reduce_add(TYPE* dst, const TYPE* src, unsigned int size, \
                                  EMU_LINE) EMU_BODY({                           \
        emu::atomic_add("__bang_atomic_reduce_add", line, dst, src, size);       \
    })
EMU_ATOMIC_ADD(half)
EMU_ATOMIC_ADD(bfloat16_t)
EMU_ATOMIC_ADD(float)
EMU_ATOMIC_ADD(short)
EMU_ATOMIC_ADD(int)
#undef EMU_ATOMIC_ADD
