// Hygon's matrix builtins as AMD's of the same operands: for type checks, their results lie otherwise.
#pragma once
#define __builtin_amdgcn_mmac_f32_16x16x16f16(a, b, c) __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, 0, 0, 0)
#define __builtin_amdgcn_mmac_f32_16x16x16bf16(a, b, c) __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, 0, 0, 0)
#define __builtin_amdgcn_mmac_i32_16x16x32i8(a, b, c) __builtin_amdgcn_mfma_i32_16x16x32_i8(a, b, c, 0, 0, 0)
