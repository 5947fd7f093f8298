// Conversions between float and the 16-bit floats, for host programs; rounds half to even.
#pragma once
#include <stdint.h>
#include <string.h>

namespace emu_host {

inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint16_t to_bfloat(float value) {
    const uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return uint16_t(bits >> 16 | 0x40);
    return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float from_bfloat(uint16_t bits) { return float_of(uint32_t(bits) << 16); }

inline uint16_t to_half(float value) {
    const uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000) return uint16_t(sign | 0x7e00);
    if (rest >= 0x477ff000) return uint16_t(sign | 0x7c00);  // rounds past the largest half
    if (rest < 0x38800000) {  // subnormal: what float adds to one half rounds as it should
        const float scaled = float_of(rest) + 0.5f;
        return uint16_t(sign | (bits_of(scaled) - bits_of(0.5f)));
    }
    return uint16_t(sign | ((rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13));
}

inline float from_half(uint16_t bits) {
    const uint32_t sign = uint32_t(bits & 0x8000) << 16, rest = bits & 0x7fff;
    if (rest >= 0x7c00) return float_of(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest < 0x400) {
        const float value = float(rest) * float_of(0x33800000);
        return sign ? -value : value;
    }
    return float_of(sign | ((rest << 13) + 0x38000000));
}

}  // namespace emu_host
