// Barriers and lane functions with masks of 64 bits, in CUDA's spelling.
#pragma once

#define warpSize EMU_WARP
#define __syncthreads() ((void)emu_barrier(0, 0, 0, "__syncthreads"))
#define __syncthreads_count(p) ((int)emu_barrier(0, 0, (p) ? 1 : 0, "__syncthreads_count"))
#define __syncthreads_or(p) ((int)(emu_barrier(0, 0, (p) ? 1 : 0, "__syncthreads_or") != 0))
#define __syncthreads_and(p) ((int)(emu_barrier(0, 0, (p) ? 0 : 1, "__syncthreads_and") == 0))
EMU_INLINE void __syncwarp(unsigned long long mask = ~0ull) { emu_warp_barrier(mask); }

#define EMU_SHUFFLE(name, mode, type)                                                             \
    template <class T>                                                                            \
    EMU_INLINE T name##_sync(unsigned long long mask, T value, type arg, int width = EMU_WARP) {  \
        static_assert(sizeof(T) <= 16, "a shuffle moves at most 16 bytes");                       \
        emu_shuffle(&value, (int)sizeof(T), mode, (int)arg, width, mask);                         \
        return value;                                                                             \
    }
EMU_SHUFFLE(__shfl, SHUFFLE_INDEX, int)
EMU_SHUFFLE(__shfl_up, SHUFFLE_UP, unsigned)
EMU_SHUFFLE(__shfl_down, SHUFFLE_DOWN, unsigned)
EMU_SHUFFLE(__shfl_xor, SHUFFLE_XOR, int)
#undef EMU_SHUFFLE
EMU_INLINE unsigned long long __ballot_sync(unsigned long long mask, int p) {
    return emu_vote(VOTE_BALLOT, mask, p != 0, nullptr);
}
EMU_INLINE int __any_sync(unsigned long long mask, int p) { return __ballot_sync(mask, p) != 0; }
EMU_INLINE int __all_sync(unsigned long long mask, int p) { return __ballot_sync(mask, !p) == 0; }
EMU_INLINE unsigned long long __activemask() { return emu_vote(VOTE_BALLOT, 0, 1, nullptr); }

#define __threadfence() emu_fence()
#define __threadfence_block() emu_fence()
#define __threadfence_system() emu_fence()
#define __trap() emu_trap("__trap()")
