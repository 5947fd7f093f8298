// CUDA's and HIP's vector types: float4, uint2, … with make_ functions.
#pragma once

#define EMU_VECTORS(name, type, align2, align4)                                            \
    struct name##1 {                                                                       \
        type x;                                                                            \
    };                                                                                     \
    struct alignas(align2) name##2 {                                                       \
        type x, y;                                                                         \
    };                                                                                     \
    struct name##3 {                                                                       \
        type x, y, z;                                                                      \
    };                                                                                     \
    struct alignas(align4) name##4 {                                                       \
        type x, y, z, w;                                                                   \
    };                                                                                     \
    inline name##1 make_##name##1(type x) { return {x}; }                                  \
    inline name##2 make_##name##2(type x, type y) { return {x, y}; }                       \
    inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }            \
    inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
#define uint3 emu_unused_uint3  // device.h has it: indices are of that type
#define make_uint3 emu_unused_make_uint3
EMU_VECTORS(uint, unsigned, 8, 16)
#undef uint3
#undef make_uint3
EMU_VECTORS(char, signed char, 2, 4)
EMU_VECTORS(uchar, unsigned char, 2, 4)
EMU_VECTORS(short, short, 4, 8)
EMU_VECTORS(ushort, unsigned short, 4, 8)
EMU_VECTORS(int, int, 8, 16)
EMU_VECTORS(long, long, 16, 16)
EMU_VECTORS(ulong, unsigned long, 16, 16)
EMU_VECTORS(longlong, long long, 16, 16)
EMU_VECTORS(ulonglong, unsigned long long, 16, 16)
EMU_VECTORS(float, float, 8, 16)
EMU_VECTORS(double, double, 16, 16)
#undef EMU_VECTORS
