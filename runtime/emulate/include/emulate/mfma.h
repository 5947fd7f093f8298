// AMD's matrix builtins: MFMA on waves of 64, WMMA on waves of 32. What an architecture lacks is
// not declared, so the compiler names it.
#pragma once

extern "C" void emu_mfma(int m, int n, int k, int type_a, int type_b, int type_d, void* d, const void* a,
                         const void* b, const void* c);
extern "C" void emu_wmma(int gfx12, int type_a, int type_b, int type_d, void* d, const void* a,
                         const void* b, const void* c);

namespace emu {
constexpr int matrix_bits(int type) {
    return type == TYPE_F64 ? 64 : type == TYPE_F16 || type == TYPE_BF16 ? 16
           : type == TYPE_F32 || type == TYPE_TF32 ? 32 : 8;
}
template <int m, int n, int k, int ta, int tb, int td, class A, class B, class C>
EMU_INLINE C mfma(A a, B b, C c) {
    static_assert(sizeof(A) * 8 == m * k / 64 * matrix_bits(ta), "operand A of another size");
    static_assert(sizeof(B) * 8 == n * k / 64 * matrix_bits(tb), "operand B of another size");
    static_assert(sizeof(C) == m * n / 64 * (td == TYPE_F64 ? 8 : 4), "accumulator of another size");
    C d;
    emu_mfma(m, n, k, ta, tb, td, &d, &a, &b, &c);
    return d;
}
template <int gfx12, int ta, int tb, int td, class A, class B, class C>
EMU_INLINE C wmma(A a, B b, C c) {
    C d;
    emu_wmma(gfx12, ta, tb, td, &d, &a, &b, &c);
    return d;
}
}  // namespace emu

#define EMU_MFMA(name, m, n, k, ta, tb, td)                                        \
    template <class A, class B, class C>                                           \
    EMU_INLINE C __builtin_amdgcn_mfma_##name(A a, B b, C c, int, int, int) {      \
        return emu::mfma<m, n, k, TYPE_##ta, TYPE_##tb, TYPE_##td>(a, b, c);       \
    }

#if EMU_GFX == 0x90a || EMU_GFX == 0x942 || EMU_GFX == 0x950
EMU_MFMA(f32_16x16x16f16, 16, 16, 16, F16, F16, F32)
EMU_MFMA(f32_32x32x8f16, 32, 32, 8, F16, F16, F32)
EMU_MFMA(f32_16x16x16bf16_1k, 16, 16, 16, BF16, BF16, F32)
EMU_MFMA(f32_32x32x8bf16_1k, 32, 32, 8, BF16, BF16, F32)
EMU_MFMA(f32_16x16x4f32, 16, 16, 4, F32, F32, F32)
EMU_MFMA(f32_32x32x2f32, 32, 32, 2, F32, F32, F32)
EMU_MFMA(f64_16x16x4f64, 16, 16, 4, F64, F64, F64)
#endif
#if EMU_GFX == 0x90a
EMU_MFMA(i32_16x16x16i8, 16, 16, 16, S8, S8, S32)
EMU_MFMA(i32_32x32x8i8, 32, 32, 8, S8, S8, S32)
#endif
#if EMU_GFX == 0x942 || EMU_GFX == 0x950
EMU_MFMA(i32_16x16x32_i8, 16, 16, 32, S8, S8, S32)
EMU_MFMA(i32_32x32x16_i8, 32, 32, 16, S8, S8, S32)
// gfx942 has the fnuz kinds of fp8, gfx950 the common ones.
#if EMU_GFX == 0x942
#define EMU_MFMA8(name, m, n, k, a, b) EMU_MFMA(name, m, n, k, a##FNUZ, b##FNUZ, F32)
#else
#define EMU_MFMA8(name, m, n, k, a, b) EMU_MFMA(name, m, n, k, a, b, F32)
#endif
EMU_MFMA8(f32_16x16x32_fp8_fp8, 16, 16, 32, E4M3, E4M3)
EMU_MFMA8(f32_16x16x32_fp8_bf8, 16, 16, 32, E4M3, E5M2)
EMU_MFMA8(f32_16x16x32_bf8_fp8, 16, 16, 32, E5M2, E4M3)
EMU_MFMA8(f32_16x16x32_bf8_bf8, 16, 16, 32, E5M2, E5M2)
EMU_MFMA8(f32_32x32x16_fp8_fp8, 32, 32, 16, E4M3, E4M3)
EMU_MFMA8(f32_32x32x16_fp8_bf8, 32, 32, 16, E4M3, E5M2)
EMU_MFMA8(f32_32x32x16_bf8_fp8, 32, 32, 16, E5M2, E4M3)
EMU_MFMA8(f32_32x32x16_bf8_bf8, 32, 32, 16, E5M2, E5M2)
#endif
#if EMU_GFX == 0x942
EMU_MFMA(f32_16x16x8_xf32, 16, 16, 8, TF32, TF32, F32)
EMU_MFMA(f32_32x32x4_xf32, 32, 32, 4, TF32, TF32, F32)
#endif
#if EMU_GFX == 0x950
EMU_MFMA(f32_16x16x32_f16, 16, 16, 32, F16, F16, F32)
EMU_MFMA(f32_16x16x32_bf16, 16, 16, 32, BF16, BF16, F32)
EMU_MFMA(f32_32x32x16_f16, 32, 32, 16, F16, F16, F32)
EMU_MFMA(f32_32x32x16_bf16, 32, 32, 16, BF16, BF16, F32)
EMU_MFMA(i32_16x16x64_i8, 16, 16, 64, S8, S8, S32)
EMU_MFMA(i32_32x32x32_i8, 32, 32, 32, S8, S8, S32)
#endif

#define EMU_WMMA(name, gfx12, ta, tb, td)                                          \
    template <class A, class B, class C>                                           \
    EMU_INLINE C __builtin_amdgcn_wmma_##name(A a, B b, C c) {                     \
        return emu::wmma<gfx12, TYPE_##ta, TYPE_##tb, TYPE_##td>(a, b, c);         \
    }
#if EMU_GFX >= 0x1100 && EMU_GFX < 0x1200
EMU_WMMA(f32_16x16x16_f16_w32, 0, F16, F16, F32)
EMU_WMMA(f32_16x16x16_bf16_w32, 0, BF16, BF16, F32)
template <class A, class C>
EMU_INLINE C __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(bool sign_a, A a, bool sign_b, A b, C c, bool) {
    C d;
    emu_wmma(0, sign_a ? TYPE_S8 : TYPE_U8, sign_b ? TYPE_S8 : TYPE_U8, TYPE_S32, &d, &a, &b, &c);
    return d;
}
#endif
#if EMU_GFX >= 0x1200
EMU_WMMA(f32_16x16x16_f16_w32_gfx12, 1, F16, F16, F32)
EMU_WMMA(f32_16x16x16_bf16_w32_gfx12, 1, BF16, BF16, F32)
EMU_WMMA(f32_16x16x16_fp8_fp8_w32_gfx12, 1, E4M3, E4M3, F32)
EMU_WMMA(f32_16x16x16_fp8_bf8_w32_gfx12, 1, E4M3, E5M2, F32)
EMU_WMMA(f32_16x16x16_bf8_fp8_w32_gfx12, 1, E5M2, E4M3, F32)
EMU_WMMA(f32_16x16x16_bf8_bf8_w32_gfx12, 1, E5M2, E5M2, F32)
template <class A, class C>
EMU_INLINE C __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(bool sign_a, A a, bool sign_b, A b, C c, bool) {
    C d;
    emu_wmma(1, sign_a ? TYPE_S8 : TYPE_U8, sign_b ? TYPE_S8 : TYPE_U8, TYPE_S32, &d, &a, &b, &c);
    return d;
}
#endif
#undef EMU_MFMA
#undef EMU_WMMA
