#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"

#define EMU_F8 __nv_fp8_e4m3
#define EMU_F8_FORM emu::e4m3_form
#include "../emulate/float8.h"
#undef EMU_F8
#undef EMU_F8_FORM
#define EMU_F8 __nv_fp8_e5m2
#define EMU_F8_FORM emu::e5m2_form
#include "../emulate/float8.h"
#undef EMU_F8
#undef EMU_F8_FORM

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
struct __half_raw {
    unsigned short x;
};
struct __half2_raw {
    unsigned short x, y;
};

namespace emu {
EMU_INLINE Float8Form form_of(__nv_fp8_interpretation_t kind) {
    return kind == __NV_E4M3 ? e4m3_form : e5m2_form;
}
}  // namespace emu

EMU_INLINE __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturate,
                                                    __nv_fp8_interpretation_t kind) {
    return emu::float_to_float8(x, emu::form_of(kind), saturate == __NV_SATFINITE);
}
EMU_INLINE __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturate,
                                                         __nv_fp8_interpretation_t kind) {
    return (__nv_fp8x2_storage_t)(__nv_cvt_float_to_fp8(x.x, saturate, kind) |
                                  __nv_cvt_float_to_fp8(x.y, saturate, kind) << 8);
}
EMU_INLINE __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
    return {emu::float_to_half(emu::float8_to_float(x, emu::form_of(kind)))};
}
EMU_INLINE __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t kind) {
    return {__nv_cvt_fp8_to_halfraw((unsigned char)x, kind).x,
            __nv_cvt_fp8_to_halfraw((unsigned char)(x >> 8), kind).x};
}
EMU_INLINE __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturate,
                                                      __nv_fp8_interpretation_t kind) {
    return __nv_cvt_float_to_fp8(emu::half_to_float(x.x), saturate, kind);
}

#define EMU_F8_VECTORS(name, type)                                                    \
    struct alignas(2) name##x2_##type {                                                            \
        __nv_fp8x2_storage_t __x;                                                                  \
        name##x2_##type() = default;                                                               \
        EMU_INLINE explicit name##x2_##type(float2 f) {                                            \
            __x = (unsigned short)(name##_##type(f.x).__x | name##_##type(f.y).__x << 8);          \
        }                                                                                          \
        EMU_INLINE explicit operator float2() const {                                              \
            name##_##type lo, hi;                                                                  \
            lo.__x = (unsigned char)__x, hi.__x = (unsigned char)(__x >> 8);                       \
            return {(float)lo, (float)hi};                                                         \
        }                                                                                          \
    };                                                                                             \
    struct alignas(4) name##x4_##type {                                                            \
        __nv_fp8x4_storage_t __x;                                                                  \
        name##x4_##type() = default;                                                               \
        EMU_INLINE explicit name##x4_##type(float4 f) {                                            \
            __x = name##x2_##type(float2{f.x, f.y}).__x |                                          \
                  (unsigned)name##x2_##type(float2{f.z, f.w}).__x << 16;                           \
        }                                                                                          \
        EMU_INLINE explicit operator float4() const {                                              \
            name##x2_##type lo, hi;                                                                \
            lo.__x = (unsigned short)__x, hi.__x = (unsigned short)(__x >> 16);                    \
            const float2 a = (float2)lo, b = (float2)hi;                                           \
            return {a.x, a.y, b.x, b.y};                                                           \
        }                                                                                          \
    };
EMU_F8_VECTORS(__nv_fp8, e4m3)
EMU_F8_VECTORS(__nv_fp8, e5m2)
#undef EMU_F8_VECTORS
