// Models of PTX instructions. The text step turns each instruction of an asm statement into a call:
// registers are the operands' own variables, `pack` holds the members of {a, b, …}.
#pragma once
#include "numbers.h"

extern "C" {
void emu_cp_async(uint32_t dst, const void* src, uint32_t bytes, uint32_t src_bytes);
void emu_cp_async_commit();
void emu_cp_async_wait(int pending);
void emu_ldmatrix(int count, int transposed, uint32_t* registers, uint32_t address);
void emu_stmatrix(int count, int transposed, const uint32_t* registers, uint32_t address);
void emu_mma(int m, int n, int k, int type_d, int type_a, int type_b, int type_c, int a_row, int b_row,
             void* d, const void* a, const void* b, const void* c);
}

namespace emu {
namespace ptx {

// The variables of a vector operand, all of one size.
template <class T, int n>
struct Pack {
    const void* at[n];
    template <class W>
    EMU_INLINE void load(W* words) const {
        static_assert(sizeof(W) == sizeof(T), "a vector operand of another size");
        for (int i = 0; i < n; ++i) __builtin_memcpy(words + i, at[i], sizeof(W));
    }
    template <class W>
    EMU_INLINE void store(const W* words) const {
        for (int i = 0; i < n; ++i) __builtin_memcpy(const_cast<void*>(at[i]), words + i, sizeof(W));
    }
    // The same where registers may be wider than the elements.
    template <class W>
    EMU_INLINE void load_each(W* words) const {
        static_assert(sizeof(W) <= sizeof(T), "a register too small for its element");
        for (int i = 0; i < n; ++i) __builtin_memcpy(words + i, at[i], sizeof(W));
    }
    template <class W>
    EMU_INLINE void store_each(const W* words) const {
        static_assert(sizeof(W) <= sizeof(T), "a register too small for its element");
        for (int i = 0; i < n; ++i) {
            __builtin_memset(const_cast<void*>(at[i]), 0, sizeof(T));
            __builtin_memcpy(const_cast<void*>(at[i]), words + i, sizeof(W));
        }
    }
};
template <class T, class... R>
EMU_INLINE Pack<T, 1 + (int)sizeof...(R)> pack(const T& first, const R&... rest) {
    return {{&first, static_cast<const void*>(&rest)...}};
}

// Input operands by constraint letter.
template <class T>
EMU_INLINE uint32_t in_r(T x) {
    if constexpr (sizeof(T) == 4) return as<uint32_t>(x);
    else return (uint32_t)x;
}
template <class T>
EMU_INLINE uint64_t in_l(T x) { return (uint64_t)x; }
template <class T>
EMU_INLINE uint16_t in_h(T x) {
    if constexpr (sizeof(T) == 2) return as<uint16_t>(x);
    else return (uint16_t)x;
}
EMU_INLINE float in_f(float x) { return x; }
EMU_INLINE double in_d(double x) { return x; }

// `_`: a result that nobody wants.
struct Sink {
    unsigned char room[16];
};
EMU_INLINE Sink& sink() {
    static Sink unused;
    return unused;
}
template <class T>
EMU_INLINE void put(Sink&, const T&) {}

// ---- copies and matrices

EMU_INLINE void cp_async(uint32_t dst, uint64_t src, uint32_t bytes, uint32_t src_bytes) {
    emu_cp_async(dst, (const void*)src, bytes, src_bytes);
}
EMU_INLINE void cp_async(uint32_t dst, uint64_t src, uint32_t bytes) {
    emu_cp_async(dst, (const void*)src, bytes, bytes);
}
// With a cache policy as last operand.
EMU_INLINE void cp_async_hint(uint32_t dst, uint64_t src, uint32_t bytes, uint64_t) {
    cp_async(dst, src, bytes);
}
EMU_INLINE void cp_async_hint(uint32_t dst, uint64_t src, uint32_t bytes, uint32_t src_bytes, uint64_t) {
    cp_async(dst, src, bytes, src_bytes);
}
EMU_INLINE void cp_async_commit() { emu_cp_async_commit(); }
EMU_INLINE void cp_async_wait(int pending) { emu_cp_async_wait(pending); }
EMU_INLINE void cp_async_wait_all() { emu_cp_async_wait(-1); }

template <int count, bool transposed, class T>
EMU_INLINE void ldmatrix(Pack<T, count> d, uint32_t address) {
    uint32_t words[count];
    emu_ldmatrix(count, transposed, words, address);
    d.store(words);
}
template <int count, bool transposed, class T>
EMU_INLINE void stmatrix(uint32_t address, Pack<T, count> s) {
    uint32_t words[count];
    s.load(words);
    emu_stmatrix(count, transposed, words, address);
}

template <int size>
struct Word {
    using type = uint32_t;
};
template <>
struct Word<8> {
    using type = uint64_t;
};
template <int m, int n, int k, int td, int ta, int tb, int tc, bool a_row, bool b_row, class D, int nd,
          class A, int na, class B, int nb, class C, int nc>
EMU_INLINE void mma(Pack<D, nd> d, Pack<A, na> a, Pack<B, nb> b, Pack<C, nc> c) {
    typename Word<sizeof(A)>::type wa[na], wb[nb], wc[nc], wd[nd];
    a.load(wa);
    b.load(wb);
    c.load(wc);
    emu_mma(m, n, k, td, ta, tb, tc, a_row, b_row, wd, wa, wb, wc);
    d.store(wd);
}

}  // namespace ptx
}  // namespace emu
