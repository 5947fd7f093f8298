// Tiles of a matrix instruction, gathered from the lanes' registers and scattered back.
#pragma once
#include <cstdint>
#include <cstring>

#include "../core/collective.h"
#include "../include/emulate/codes.h"
#include "../include/emulate/numbers.h"

namespace emu {

inline int bits_of(int type) {
    switch (type) {
        case TYPE_S8: case TYPE_U8: case TYPE_E4M3: case TYPE_E5M2:
        case TYPE_E4M3FNUZ: case TYPE_E5M2FNUZ: return 8;
        case TYPE_F16: case TYPE_BF16: return 16;
        case TYPE_F64: return 64;
        default: return 32;
    }
}
inline bool is_integer(int type) { return type == TYPE_S8 || type == TYPE_U8; }

// Element `at` of packed values, as the matrix unit sees it.
inline float element(int type, const void* data, int at) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    uint16_t half;
    uint32_t word;
    switch (type) {
        case TYPE_S8: return float(static_cast<signed char>(bytes[at]));
        case TYPE_U8: return float(bytes[at]);
        case TYPE_E4M3: return float8_to_float(bytes[at], e4m3_form);
        case TYPE_E5M2: return float8_to_float(bytes[at], e5m2_form);
        case TYPE_E4M3FNUZ: return float8_to_float(bytes[at], e4m3fnuz_form);
        case TYPE_E5M2FNUZ: return float8_to_float(bytes[at], e5m2fnuz_form);
        case TYPE_F16: std::memcpy(&half, bytes + 2 * at, 2); return half_to_float(half);
        case TYPE_BF16: std::memcpy(&half, bytes + 2 * at, 2); return bfloat_to_float(half);
        default: break;
    }
    std::memcpy(&word, bytes + 4 * at, 4);
    return type == TYPE_TF32 ? truncate_tf32(bits_to_float(word)) : bits_to_float(word);
}

// acc[m][n] += a[m][k] * b[k][n], sums in order of k.
template <class T>
inline __attribute__((always_inline)) void multiply(T* acc, const T* a, const T* b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int l = 0; l < k; ++l) {
            const T x = a[i * k + l];
            for (int j = 0; j < n; ++j) acc[i * n + j] += x * b[l * n + j];
        }
}

}  // namespace emu
