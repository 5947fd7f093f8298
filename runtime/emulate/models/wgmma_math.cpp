// The arithmetic of wgmma and where the elements of its operands lie.
#include <cmath>
#include <cstring>

#include "matrix.h"
#include "wgmma.h"

#if defined(__x86_64__)
#define EMU_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define EMU_WIDE
#endif

namespace emu {

// Fields of the descriptor, bytes: address | leading offset << 16 | stride offset << 32, each divided
// by 16 and 14 bits wide; bits 62 and 63 the swizzle: 0 none, 1 128 bytes, 2 64, 3 32.
uint32_t operand_byte(const Operand& o, int mn, int k) {
    const uint64_t d = o.descriptor;
    const auto field = [&](int bit) { return uint32_t(d >> bit & 0x3fff) << 4; };
    const uint32_t start = field(0), leading = field(16), stride = field(32), mode = uint32_t(d >> 62);
    const uint32_t row = uint32_t(mn), e = uint32_t(o.element_bytes), depth = uint32_t(k);
    uint32_t at;
    if (!mode && !o.mn_major) {
        at = row / 8 * stride + row % 8 * 16 + depth * e / 16 * leading + depth * e % 16;
    } else if (!mode) {
        at = row * e / 16 * stride + depth / 8 * leading + depth % 8 * 16 + row * e % 16;
    } else {
        const uint32_t span = 256u >> mode;
        if (o.mn_major)
            at = row * e / span * leading + depth / 8 * stride + depth % 8 * span + row * e % span;
        else
            at = row / 8 * stride + row % 8 * span + depth * e;
    }
    at += start;
    const uint32_t mask = mode ? (16u >> mode) - 1 : 0;
    return at ^ ((at >> 7 & mask) << 4);
}

using Vector __attribute__((vector_size(32), aligned(4))) = float;

// `rows` rows of acc at a time, 8 * wide columns: enough sums in registers to keep the unit busy.
template <int wide>
static inline __attribute__((always_inline)) void block(float* acc, const float* a, const float* b, int n,
                                                        int k) {
    constexpr int rows = 4;
    Vector sum[rows][wide];
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < wide; ++j) sum[i][j] = *reinterpret_cast<const Vector*>(acc + i * n + 8 * j);
    for (int l = 0; l < k; ++l)
        for (int j = 0; j < wide; ++j) {
            const Vector y = *reinterpret_cast<const Vector*>(b + l * n + 8 * j);
            for (int i = 0; i < rows; ++i) sum[i][j] += a[i * k + l] * y;
        }
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < wide; ++j) *reinterpret_cast<Vector*>(acc + i * n + 8 * j) = sum[i][j];
}

EMU_WIDE __attribute__((optimize("O3"))) void multiply_floats(float* acc, const float* a, const float* b,
                                                              int n, int k) {
    for (int i = 0; i < 64; i += 4) {
        int j = 0;
        for (; j + 16 <= n; j += 16) block<2>(acc + i * n + j, a + i * k, b + j, n, k);
        for (; j < n; j += 8) block<1>(acc + i * n + j, a + i * k, b + j, n, k);
    }
}

EMU_WIDE __attribute__((optimize("O3"))) void multiply_ints(int32_t* acc, const int32_t* a, const int32_t* b,
                                                            int n, int k, bool saturate) {
    for (int i = 0; i < 64; ++i)
        for (int j = 0; j < n; ++j) {
            int32_t sum = 0;  // 32 products of bytes: far from the limits
            for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
            const int64_t exact = int64_t(acc[i * n + j]) + sum;
            acc[i * n + j] = !saturate                 ? int32_t(uint32_t(exact))
                             : exact > INT32_MAX       ? INT32_MAX
                             : exact < INT32_MIN       ? INT32_MIN
                                                       : int32_t(exact);
        }
}

// The tensor core aligns the products of one instruction and the accumulator to the largest exponent
// among them and drops what lies below 13 fraction bits of it; sums are then exact.
constexpr int FLOAT8_BITS = 13;
constexpr int STRIP = 16;

EMU_WIDE __attribute__((optimize("O3"))) void multiply_float8(float* acc, const float* a, const float* b,
                                                              int n, int k) {
    for (int i = 0; i < 64; ++i)
        for (int j0 = 0; j0 < n; j0 += STRIP) {
            const int width = n - j0 < STRIP ? n - j0 : STRIP;
            float largest[STRIP], unit[STRIP], per_unit[STRIP];
            int32_t sum[STRIP];
            float* const row = acc + i * n + j0;
            for (int j = 0; j < width; ++j) largest[j] = std::fabs(row[j]);
            for (int l = 0; l < k; ++l)
                for (int j = 0; j < width; ++j) {
                    const float x = std::fabs(a[i * k + l] * b[l * n + j0 + j]);
                    largest[j] = x > largest[j] ? x : largest[j];
                }
            bool finite = true;
            for (int j = 0; j < width; ++j) {
                const int exponent = int(float_to_bits(largest[j]) >> 23);
                finite &= exponent < 255 && row[j] == row[j];
                const int scale = exponent < 40 ? 40 : exponent > 200 ? 200 : exponent;
                unit[j] = bits_to_float(uint32_t(scale - FLOAT8_BITS) << 23);
                per_unit[j] = bits_to_float(uint32_t(254 - scale + FLOAT8_BITS) << 23);
                sum[j] = int32_t(row[j] * per_unit[j]);
            }
            for (int l = 0; l < k; ++l)
                for (int j = 0; j < width; ++j) {
                    const float x = a[i * k + l] * b[l * n + j0 + j];
                    finite &= x == x;
                    sum[j] += int32_t(x * per_unit[j]);
                }
            if (finite)
                for (int j = 0; j < width; ++j) row[j] = float(sum[j]) * unit[j];
            else
                for (int j = 0; j < width; ++j)
                    for (int l = 0; l < k; ++l) row[j] += a[i * k + l] * b[l * n + j0 + j];
        }
}

}  // namespace emu
