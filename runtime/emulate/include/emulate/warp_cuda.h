// CUDA's barriers and warp functions. Only __syncwarp orders memory among lanes.
#pragma once

#define warpSize 32
#define __syncthreads() ((void)emu_barrier(0, 0, 0, "__syncthreads"))
#define __syncthreads_count(p) ((int)emu_barrier(0, 0, (p) ? 1 : 0, "__syncthreads_count"))
#define __syncthreads_or(p) ((int)(emu_barrier(0, 0, (p) ? 1 : 0, "__syncthreads_or") != 0))
#define __syncthreads_and(p) ((int)(emu_barrier(0, 0, (p) ? 0 : 1, "__syncthreads_and") == 0))
EMU_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { emu_warp_barrier(mask); }

#define EMU_SHUFFLE(name, mode, extra)                                                    \
    template <class T>                                                                    \
    EMU_INLINE T name(unsigned mask, T value, extra arg, int width = 32) {                \
        static_assert(sizeof(T) <= 16, "a shuffle moves at most 16 bytes");               \
        emu_shuffle(&value, (int)sizeof(T), mode, (int)arg, width, mask);                 \
        return value;                                                                     \
    }
EMU_SHUFFLE(__shfl_sync, SHUFFLE_INDEX, int)
EMU_SHUFFLE(__shfl_up_sync, SHUFFLE_UP, unsigned)
EMU_SHUFFLE(__shfl_down_sync, SHUFFLE_DOWN, unsigned)
EMU_SHUFFLE(__shfl_xor_sync, SHUFFLE_XOR, int)
#undef EMU_SHUFFLE

EMU_INLINE unsigned __ballot_sync(unsigned mask, int p) {
    return (unsigned)emu_vote(VOTE_BALLOT, mask, p != 0, nullptr);
}
EMU_INLINE int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
EMU_INLINE int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }
EMU_INLINE unsigned __activemask() { return emu_active_mask(); }
template <class T>
EMU_INLINE unsigned __match_any_sync(unsigned mask, T value) {
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return (unsigned)emu_vote(VOTE_MATCH_ANY, mask, bits, nullptr);
}
template <class T>
EMU_INLINE unsigned __match_all_sync(unsigned mask, T value, int* same) {
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return (unsigned)emu_vote(VOTE_MATCH_ALL, mask, bits, same);
}

#if EMU_ARCH >= 800
#define EMU_REDUCE(name, type, kind)                                 \
    EMU_INLINE type name(unsigned mask, type value) {                \
        return (type)emu_vote(kind, mask, (unsigned)value, nullptr); \
    }
#else
#define EMU_REDUCE(name, type, kind) \
    __attribute__((error(#name " needs sm_80"))) type name(unsigned mask, type value);
#endif
EMU_REDUCE(__reduce_add_sync, int, VOTE_ADD)
EMU_REDUCE(__reduce_add_sync, unsigned, VOTE_ADD)
EMU_REDUCE(__reduce_min_sync, int, VOTE_MIN_S)
EMU_REDUCE(__reduce_min_sync, unsigned, VOTE_MIN_U)
EMU_REDUCE(__reduce_max_sync, int, VOTE_MAX_S)
EMU_REDUCE(__reduce_max_sync, unsigned, VOTE_MAX_U)
EMU_REDUCE(__reduce_and_sync, unsigned, VOTE_AND)
EMU_REDUCE(__reduce_or_sync, unsigned, VOTE_OR)
EMU_REDUCE(__reduce_xor_sync, unsigned, VOTE_XOR)
#undef EMU_REDUCE

#define __threadfence() emu_fence()
#define __threadfence_block() emu_fence()
#define __threadfence_system() emu_fence()
#define __trap() emu_trap("__trap()")
#define __nanosleep(ns) ((void)(ns), emu_sleep())
#define clock64() ((long long)emu_clock())
#define clock() ((int)emu_clock())
#define __assume(x) ((void)0)
#define __builtin_assume(x) ((void)0)

// Cache hints change nothing here.
#define EMU_LOAD(name)          \
    template <class T>          \
    EMU_INLINE T name(const T* at) { return *at; }
EMU_LOAD(__ldg) EMU_LOAD(__ldcs) EMU_LOAD(__ldca) EMU_LOAD(__ldcg) EMU_LOAD(__ldlu) EMU_LOAD(__ldcv)
#undef EMU_LOAD
#define EMU_STORE(name)         \
    template <class T, class V> \
    EMU_INLINE void name(T* at, V value) { *at = value; }
EMU_STORE(__stcs) EMU_STORE(__stcg) EMU_STORE(__stwb) EMU_STORE(__stwt)
#undef EMU_STORE

EMU_INLINE size_t __cvta_generic_to_shared(const void* at) { return emu_shared_address(at); }
EMU_INLINE size_t __cvta_generic_to_global(const void* at) { return (size_t)at; }
EMU_INLINE void* __cvta_shared_to_generic(size_t at) { return emu_shared_pointer((uint32_t)at); }
EMU_INLINE unsigned __isShared(const void* at) { return (unsigned)emu_is_shared(at); }
