// Conversions between float and the small floating types, round to nearest even. Branches are few,
// so that loops over fragments vectorise. Used by kernels and by the models.
#pragma once

namespace emu {

inline float bits_to_float(unsigned u) {
    float f;
    __builtin_memcpy(&f, &u, 4);
    return f;
}
inline unsigned float_to_bits(float f) {
    unsigned u;
    __builtin_memcpy(&u, &f, 4);
    return u;
}

inline float half_to_float(unsigned short h) {
    // Exponent and fraction as a float are too small by 2^112; infinities and NaN need the rest.
    const float scaled = bits_to_float((h & 0x7fffu) << 13) * 0x1p112f;
    const unsigned magnitude = float_to_bits(scaled) | ((h & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u);
    return bits_to_float(magnitude | (h & 0x8000u) << 16);
}

inline unsigned short float_to_half(float f) {
    const unsigned u = float_to_bits(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return (unsigned short)0x7fffu;
    if (a >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);  // rounds past 65504
    if (a < 0x38800000u) {  // subnormal: let the addition of 0.5 round at 2^-24
        const float shifted = bits_to_float(a) + 0.5f;
        return (unsigned short)(sign | (float_to_bits(shifted) - 0x3f000000u));
    }
    return (unsigned short)(sign | ((a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13));
}

inline float bfloat_to_float(unsigned short b) { return bits_to_float((unsigned)b << 16); }

inline unsigned short float_to_bfloat(float f) {
    const unsigned u = float_to_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (unsigned short)0x7fffu;
    return (unsigned short)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

// An 8-bit float: `bias`, `fraction` bits; finite ones (e4m3) have no infinity; `nuz` types have one
// zero and keep 0x80 for NaN.
struct Float8Form {
    int fraction, bias;
    bool infinity, nuz;
};
constexpr Float8Form e4m3_form = {3, 7, false, false};
constexpr Float8Form e5m2_form = {2, 15, true, false};
constexpr Float8Form e4m3fnuz_form = {3, 8, false, true};
constexpr Float8Form e5m2fnuz_form = {2, 16, false, true};

inline float float8_to_float(unsigned char b, Float8Form form) {
    const int exponent = (b & 0x7f) >> form.fraction, fraction = b & ((1 << form.fraction) - 1);
    const float nan = bits_to_float(0x7fc00000u);
    if (form.nuz && b == 0x80) return nan;
    if (!form.nuz && !form.infinity && (b & 0x7f) == 0x7f) return nan;
    if (form.infinity && exponent == 31)
        return fraction ? nan : bits_to_float(b & 0x80 ? 0xff800000u : 0x7f800000u);
    const int power = (exponent ? exponent : 1) - form.bias - form.fraction;
    const float unit = bits_to_float((unsigned)(power + 127) << 23);
    const float value = (float)(fraction + (exponent ? 1 << form.fraction : 0)) * unit;
    return b & 0x80 ? -value : value;
}

// The largest finite magnitude and its code.
inline int float8_max(Float8Form form) {
    return form.nuz ? 0x7f : form.infinity ? 0x7b : 0x7e;
}

// `saturate`: what is too large becomes the largest finite value, otherwise infinity or NaN.
inline unsigned char float_to_float8(float f, Float8Form form, bool saturate) {
    const unsigned u = float_to_bits(f);
    const unsigned char sign = (unsigned char)(u >> 24 & 0x80u);
    const unsigned a = u & 0x7fffffffu;
    const unsigned char nan = form.nuz ? 0x80 : (unsigned char)(sign | 0x7f);
    if (a > 0x7f800000u) return nan;
    const int largest = float8_max(form);
    int code;
    if (a == 0x7f800000u) {
        code = 0x100;
    } else {
        const int exponent = (int)(a >> 23) - 127;
        const int lowest = 1 - form.bias;
        // Units of the last place at this magnitude, rounded to even by the float addition trick.
        const int place = (exponent > lowest ? exponent : lowest) - form.fraction;
        const float scaled = bits_to_float(a) * bits_to_float((unsigned)(127 - place) << 23);
        int units = (int)scaled;
        const float rest = scaled - (float)units;
        units += rest > 0.5f || (rest == 0.5f && (units & 1));
        code = exponent > lowest ? units + ((exponent - lowest) << form.fraction) : units;
    }
    if (code > largest) {
        if (saturate) return (unsigned char)(sign | largest);
        if (form.infinity) return (unsigned char)(sign | 0x7c);
        return nan;
    }
    if (form.nuz && code == 0) return 0;
    return (unsigned char)(sign | code);
}

// tf32 keeps 10 bits of the fraction. The tensor core drops the others, cvt.rna rounds half away.
inline float truncate_tf32(float f) { return bits_to_float(float_to_bits(f) & 0xffffe000u); }
inline unsigned round_tf32(float f) {
    const unsigned u = float_to_bits(f);
    if ((u & 0x7f800000u) == 0x7f800000u) return u;
    return (u + 0x1000u) & 0xffffe000u;
}

}  // namespace emu
