// PTX that touches memory or other threads: loads, stores, atomics, barriers, fences, shuffles.
#pragma once

extern "C" {
void emu_load(int shared, uint64_t at, void* to, int bytes, int count);
void emu_store(int shared, uint64_t at, const void* from, int bytes, int count);
void emu_atomic_at(int shared, int op, int type, uint64_t at, void* old, const void* value,
                   const void* compare);
uint32_t emu_linear_thread();
}

namespace emu {
namespace ptx {

// A vector of registers, or one.
template <class T, int n>
EMU_INLINE Pack<T, n> many(Pack<T, n> p) { return p; }
template <class T>
EMU_INLINE Pack<T, 1> many(const T& x) { return {{&x}}; }

// Registers may be wider than what is loaded: bytes and halves land in their low part.
template <class E, bool shared, class D>
EMU_INLINE void ld(D&& d, uint64_t at) {
    const auto to = many(d);
    constexpr int n = sizeof(to.at) / sizeof(to.at[0]);
    E values[n];
    emu_load(shared, at, values, sizeof(E), n);
    to.store_each(values);
}
template <class E, bool shared, class S>
EMU_INLINE void st(uint64_t at, const S& s) {
    const auto from = many(s);
    constexpr int n = sizeof(from.at) / sizeof(from.at[0]);
    E values[n];
    from.load_each(values);
    emu_store(shared, at, values, sizeof(E), n);
}

template <int op, int type, bool shared, class T, class V>
EMU_INLINE void red(uint64_t at, const V& value) {
    const T v = get<T>(value);
    T old;
    emu_atomic_at(shared, op, type, at, &old, &v, nullptr);
}
template <int op, int type, bool shared, class T, class D, class V>
EMU_INLINE void atom(D& d, uint64_t at, const V& value) {
    const T v = get<T>(value);
    T old;
    emu_atomic_at(shared, op, type, at, &old, &v, nullptr);
    put(d, old);
}
template <int op, int type, bool shared, class T, class D, class C, class V>
EMU_INLINE void atom(D& d, uint64_t at, const C& compare, const V& value) {
    const T c = get<T>(compare), v = get<T>(value);
    T old;
    emu_atomic_at(shared, op, type, at, &old, &v, &c);
    put(d, old);
}
// Flags: release and acquire are a fence beside an atomic store or load.
template <int type, bool shared, class T, class D>
EMU_INLINE void ld_acquire(D& d, uint64_t at) {
    T old, unused = T();
    emu_atomic_at(shared, ATOMIC_LOAD, type, at, &old, &unused, nullptr);
    put(d, old);
}
template <int type, bool shared, class T, class V>
EMU_INLINE void st_release(uint64_t at, const V& value) {
    emu_fence();
    red<ATOMIC_STORE, type, shared, T>(at, value);
}

EMU_INLINE void bar_sync(uint32_t id) { emu_barrier(id, 0, 0, "bar.sync"); }
EMU_INLINE void bar_sync(uint32_t id, uint32_t threads) { emu_barrier(id, threads, 0, "bar.sync"); }
EMU_INLINE void bar_arrive(uint32_t id, uint32_t threads) { emu_barrier_arrive(id, threads); }
EMU_INLINE void bar_warp(uint32_t mask) { emu_warp_barrier(mask); }
EMU_INLINE void fence() { emu_fence(); }
EMU_INLINE void nothing() {}
template <class A>
EMU_INLINE void nothing(const A&) {}
template <class A, class B>
EMU_INLINE void nothing(const A&, const B&) {}
EMU_INLINE void sleep(uint32_t) { emu_sleep(); }
EMU_INLINE void trap() { emu_trap("trap"); }
template <class D, class... A>
EMU_INLINE void policy(D& d, const A&...) { put(d, (uint64_t)0x1000000000000000ull); }

template <class D>
EMU_INLINE void cvta_to_shared(D& d, uint64_t at) {
    if constexpr (sizeof(D) == 4) put(d, emu_shared_address((const void*)at));
    else put(d, (uint64_t)emu_shared_address((const void*)at));
}
template <class D>
EMU_INLINE void cvta_shared(D& d, uint64_t at) { put(d, (uint64_t)emu_shared_pointer((uint32_t)at)); }
template <class D>
EMU_INLINE void cvta_global(D& d, uint64_t at) { put(d, at); }

// Operand c holds the clamp in bits 0-4 and the segment mask in bits 8-12.
template <int mode, class D, class A>
EMU_INLINE void shfl(D& d, const A& a, uint32_t b, uint32_t c, uint32_t mask) {
    uint32_t value = get<uint32_t>(a);
    emu_shuffle(&value, 4, mode, (int)b, (int)(32u - (c >> 8 & 31u)), mask);
    put(d, value);
}
template <int mode, class D, class A>
EMU_INLINE void shfl(D& d, bool& p, const A& a, uint32_t b, uint32_t c, uint32_t mask) {
    const uint32_t width = 32u - (c >> 8 & 31u), in = emu_lane() & (width - 1u);
    shfl<mode>(d, a, b, c, mask);
    p = mode == SHUFFLE_UP ? in >= b : mode == SHUFFLE_DOWN ? in + b < width
        : mode == SHUFFLE_XOR ? (in ^ b) < width : true;
}
template <class D>
EMU_INLINE void vote_ballot(D& d, bool p, uint32_t mask) {
    put(d, (uint32_t)emu_vote(VOTE_BALLOT, mask, p, nullptr));
}
EMU_INLINE void vote_any(bool& d, bool p, uint32_t mask) { d = emu_vote(VOTE_BALLOT, mask, p, nullptr) != 0; }
EMU_INLINE void vote_all(bool& d, bool p, uint32_t mask) { d = emu_vote(VOTE_BALLOT, mask, !p, nullptr) == 0; }
template <int kind, class D, class A>
EMU_INLINE void redux(D& d, const A& a, uint32_t mask) {
    put(d, (uint32_t)emu_vote(kind, mask, get<uint32_t>(a), nullptr));
}

}  // namespace ptx
}  // namespace emu
