// The matrix unit: left operand and sums in NRAM, the right operand in WRAM, where its rows lie in
// an order that only __bang_reshape_filter makes. The hardware's is not published; the one here is
// an order of the model's own, so that a text cannot rely on another.
#pragma once

#include <vector>

#include "vector.h"

namespace emu {

constexpr uint64_t LANES = 64;

// Where element `at` of row `n` of `rows` rows of `length` lies.
inline uint64_t lane_place(uint64_t n, uint64_t at, uint64_t rows, uint64_t length) {
    const uint64_t lane = (n % LANES + 1) % LANES;
    return (lane * (rows / LANES) + n / LANES) * length + (at + 1) % length;
}

template <class T>
void reshape(const char* name, Line line, T* dst, const T* src, uint64_t n, uint64_t h, uint64_t w,
             uint64_t c) {
    for (const uint64_t size : {n, h, w, c}) needs_count(name, line.at, size, "a size");
    if (n % LANES)
        stop(MISUSE, line.at, "%s: n has to be a multiple of 64, not %llu", name,
             static_cast<unsigned long long>(n));
    const uint64_t length = h * w * c;
    if (length * sizeof(T) % 32)
        stop(MISUSE, line.at, "%s: h * w * c takes %llu bytes, no multiple of 32", name,
             static_cast<unsigned long long>(length * sizeof(T)));
    Instruction instruction(name, COMPUTE, line);
    instruction.read(NRAM, src, n * length * sizeof(T), "src");
    check_overlap(name, line.at, dst, n * length * sizeof(T), src, n * length * sizeof(T), false,
                  "src");
    instruction.write(NRAM, dst, n * length * sizeof(T), "dst");
    instruction.issue([=] {
        for (uint64_t row = 0; row < n; ++row)
            for (uint64_t at = 0; at < length; ++at) {
                bool bad = false;
                const T value = load(src + row * length + at, bad);
                store(dst + lane_place(row, at, n, length), value, bad);
            }
    });
}

// Values of one operand, each row with the word whether something in it was never written.
struct Operand {
    std::vector<float> values;
    std::vector<uint8_t> bad;
};
template <class T>
Operand rows_of(const T* at, uint64_t rows, uint64_t length, bool lanes) {
    Operand found{std::vector<float>(rows * length), std::vector<uint8_t>(rows)};
    const uint64_t padded = (rows + LANES - 1) / LANES * LANES;
    for (uint64_t row = 0; row < rows; ++row)
        for (uint64_t i = 0; i < length; ++i) {
            bool bad = false;
            const uint64_t place = lanes ? lane_place(row, i, padded, length) : row * length + i;
            found.values[row * length + i] = widen(load(at + place, bad));
            found.bad[row] |= bad;
        }
    return found;
}

inline void needs_weights(const char* name, int line, const void* at, uint64_t inner_bytes) {
    if (reinterpret_cast<uintptr_t>(at) % 32)
        stop(MISUSE, line, "%s: the address in WRAM has to be a multiple of 32 bytes", name);
    if (inner_bytes % 64)
        stop(MISUSE, line,
             "%s: a row of the operand in WRAM takes %llu bytes, no multiple of 64", name,
             static_cast<unsigned long long>(inner_bytes));
}

struct Conv {
    uint64_t ci, height, width, kh, kw, sw, sh, co;
};

// dst = partial + convolution; without `partial` it starts from 0.
template <class T>
void convolve(const char* name, Line line, float* dst, const T* src, const T* kernel,
              const float* partial, Conv c) {
    const uint64_t sizes[] = {c.ci, c.height, c.width, c.kh, c.kw, c.co};
    for (const uint64_t size : sizes) needs_count(name, line.at, size, "a size");
    if (c.sw < 1 || c.sw > 1023 || c.sh < 1 || c.sh > 1023)
        stop(MISUSE, line.at, "%s: strides have to lie in [1, 1023]", name);
    if (c.kh > c.height || c.kw > c.width)
        stop(MISUSE, line.at, "%s: the kernel is larger than the tensor", name);
    needs_weights(name, line.at, kernel, c.ci * sizeof(T));
    const uint64_t high = (c.height - c.kh) / c.sh + 1, wide = (c.width - c.kw) / c.sw + 1;
    const uint64_t length = c.kh * c.kw * c.ci, rows = (c.co + LANES - 1) / LANES * LANES;
    const uint64_t source = c.height * c.width * c.ci * sizeof(T);
    const uint64_t result = high * wide * c.co * sizeof(float);
    Instruction instruction(name, COMPUTE, line);
    instruction.read(NRAM, src, source, "src");
    instruction.read(WRAM, kernel, rows * length * sizeof(T), "the operand in WRAM");
    if (partial) instruction.read(NRAM, partial, result, "partial");
    check_overlap(name, line.at, dst, result, src, source, false, "src");
    instruction.write(NRAM, dst, result, "dst");
    instruction.issue([=] {
        const Operand weights = rows_of(kernel, c.co, length, true);
        const Operand pixels = rows_of(src, c.height * c.width, c.ci, false);
        for (uint64_t y = 0; y < high; ++y)
            for (uint64_t x = 0; x < wide; ++x)
                for (uint64_t n = 0; n < c.co; ++n) {
                    bool bad = weights.bad[n];
                    double total = 0;
                    for (uint64_t i = 0; i < c.kh; ++i)
                        for (uint64_t j = 0; j < c.kw; ++j) {
                            const uint64_t pixel = (y * c.sh + i) * c.width + x * c.sw + j;
                            bad |= pixels.bad[pixel];
                            const float* a = &pixels.values[pixel * c.ci];
                            const float* b = &weights.values[n * length + (i * c.kw + j) * c.ci];
                            for (uint64_t k = 0; k < c.ci; ++k)
                                total += double(a[k]) * double(b[k]);
                        }
                    const uint64_t at = (y * wide + x) * c.co + n;
                    if (partial) total += load(partial + at, bad);
                    store(dst + at, static_cast<float>(total), bad);
                }
    });
}

}  // namespace emu

#define EMU_RESHAPE(TYPE)                                                                  \
    void __bang_reshape_filter(TYPE* dst, const TYPE* src, unsigned int n, unsigned int h, \
                               unsigned int w, unsigned int c, EMU_LINE) EMU_BODY({        \
        emu::reshape("__bang_reshape_filter", line, dst, src, n, h, w, c);                 \
    })
EMU_RESHAPE(half)
EMU_RESHAPE(float)
EMU_RESHAPE(short)
EMU_RESHAPE(unsigned short)
EMU_RESHAPE(int8_t)
EMU_RESHAPE(char)
EMU_RESHAPE(unsigned char)
EMU_RESHAPE(int)
EMU_RESHAPE(unsigned int)
#undef EMU_RESHAPE

#define EMU_MATRIX(TYPE)                                                                   \
    void __bang_matmul(float* dst, const TYPE* src0, const TYPE* src1, unsigned int m,     \
                       unsigned int k, unsigned int n, EMU_LINE) EMU_BODY({                \
        emu::convolve<TYPE>("__bang_matmul", line, dst, src0, src1, nullptr,               \
                            {k, 1, m, 1, 1, 1, 1, n});                                     \
    })                                                                                     \
    void __bang_conv(float* dst, const TYPE* src, const TYPE* kernel, unsigned int ci,     \
                     unsigned int height, unsigned int width, unsigned int kernel_height,  \
                     unsigned int kernel_width, unsigned int stride_width,                 \
                     unsigned int stride_height, unsigned int co,                          \
                     EMU_LINE) EMU_BODY({                                                  \
        emu::convolve<TYPE>("__bang_conv", line, dst, src, kernel, nullptr,                \
                            {ci, height, width, kernel_height, kernel_width, stride_width, \
                             stride_height, co});                                          \
    })                                                                                     \
    void __bang_conv_partial(float* dst, const TYPE* src, const TYPE* kernel,              \
                             const float* partial, unsigned int ci, unsigned int height,   \
                             unsigned int width, unsigned int kernel_height,               \
                             unsigned int kernel_width, unsigned int stride_width,         \
                             unsigned int stride_height, unsigned int co,                  \
                             EMU_LINE) EMU_BODY({                                          \
        emu::convolve<TYPE>("__bang_conv_partial", line, dst, src, kernel, partial,        \
                            {ci, height, width, kernel_height, kernel_width, stride_width, \
                             stride_height, co});                                          \
    })
EMU_MATRIX(half)
EMU_MATRIX(bfloat16_t)
EMU_MATRIX(float)
#undef EMU_MATRIX
