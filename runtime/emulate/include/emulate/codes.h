// Numbers that kernel headers and the runtime's models agree on.
#pragma once

enum EmuShuffle { SHUFFLE_INDEX, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR };

enum EmuVote {
    VOTE_BALLOT,
    VOTE_MATCH_ANY,
    VOTE_MATCH_ALL,
    VOTE_ADD,
    VOTE_AND,
    VOTE_OR,
    VOTE_XOR,
    VOTE_MIN_S,
    VOTE_MAX_S,
    VOTE_MIN_U,
    VOTE_MAX_U,
};

enum EmuAtomic {
    ATOMIC_ADD,
    ATOMIC_MIN,
    ATOMIC_MAX,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_EXCHANGE,
    ATOMIC_CAS,
    ATOMIC_INC,
    ATOMIC_DEC,
    ATOMIC_LOAD,
    ATOMIC_STORE,
};

// Matrix units whose fragments are maps from (lane, value) to (row, column): models/fragments.cpp.
enum EmuFragments {
    FRAGMENTS_MMAC_16,    // Hygon, 16x16x16
    FRAGMENTS_MMAC_32,    // Hygon, 16x16x32
    FRAGMENTS_MXC_16,     // MetaX, 16x16x16
    FRAGMENTS_FMMA_16,    // Moore Threads mp_22, 32x32x16: the first of four forms, b along n,
    FRAGMENTS_FMMA_16_1,  // both operands k-major,
    FRAGMENTS_FMMA_16_2,  // a along m, b along n,
    FRAGMENTS_FMMA_16_3,  // a along m
    FRAGMENTS_IMMA_32,    // Moore Threads mp_22, 32x32x32, both operands k-major
    FRAGMENTS_WMMA_16,    // Moore Threads mp_31, 16x16x16: the same four forms
    FRAGMENTS_WMMA_16_1,
    FRAGMENTS_WMMA_16_2,
    FRAGMENTS_WMMA_16_3,
    FRAGMENTS_WMMA_32,    // Moore Threads mp_31, 16x16x32, both operands k-major
    FRAGMENTS_TC01_16,    // T-Head ppu_10, 16x16x16
    FRAGMENTS_TC01_32,    // T-Head ppu_10, 16x16x32
    FRAGMENTS_TC02_16,    // T-Head ppu_15, 16x16x16
    FRAGMENTS_TC02_32,    // T-Head ppu_15, 16x16x32
    FRAGMENTS_MAD_16,     // Iluvatar ivcore11, 16x16x16
};

// Element types of atomics, matrix fragments and conversions.
enum EmuType {
    TYPE_S8,
    TYPE_U8,
    TYPE_E4M3,
    TYPE_E5M2,
    TYPE_F16,
    TYPE_BF16,
    TYPE_TF32,
    TYPE_F32,
    TYPE_F64,
    TYPE_S32,
    TYPE_U32,
    TYPE_S64,
    TYPE_U64,
    TYPE_F16X2,
    TYPE_BF16X2,
    TYPE_F32X2,
    TYPE_F32X4,
    TYPE_E4M3FNUZ,
    TYPE_E5M2FNUZ,
};
