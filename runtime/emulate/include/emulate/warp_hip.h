// HIP's barriers and wave functions. Lanes of a wave move together but nothing orders their memory
// without a fence and a wave barrier.
#pragma once

#define warpSize EMU_WARP
#define __syncthreads() (emu_cp_async_wait(-1), (void)emu_barrier(0, 0, 0, "__syncthreads"))
#define __syncthreads_count(p) ((int)emu_barrier(0, 0, (p) ? 1 : 0, "__syncthreads_count"))
#define __syncthreads_or(p) ((int)(emu_barrier(0, 0, (p) ? 1 : 0, "__syncthreads_or") != 0))
#define __syncthreads_and(p) ((int)(emu_barrier(0, 0, (p) ? 0 : 1, "__syncthreads_and") == 0))
#define __builtin_amdgcn_s_barrier() ((void)emu_barrier(0, 0, 0, "s_barrier"))
#define __builtin_amdgcn_wave_barrier() emu_wave_barrier()
#define __builtin_amdgcn_fence(order, scope) emu_fence()
#define __builtin_amdgcn_sched_barrier(mask) ((void)0)
#define __builtin_amdgcn_sched_group_barrier(mask, size, group) ((void)0)
#define __builtin_amdgcn_iglp_opt(kind) ((void)0)
#define __builtin_amdgcn_s_setprio(priority) ((void)0)
#define __builtin_amdgcn_s_sleep(n) emu_sleep()
#define __threadfence() emu_fence()
#define __threadfence_block() emu_fence()
#define __threadfence_system() emu_fence()
#define __trap() emu_trap("__trap()")
#define __builtin_trap() emu_trap("__builtin_trap()")
#define abort() emu_trap("abort()")
#define clock64() ((long long)emu_clock())
#define __builtin_assume(x) ((void)0)
#define __builtin_nontemporal_load(at) (*(at))
#define __builtin_nontemporal_store(value, at) ((void)(*(at) = (value)))
#define __builtin_amdgcn_workitem_id_x() (emu_thread_index().x)
#define __builtin_amdgcn_workgroup_id_x() (emu_block_index().x)

// Mask 0 tells the runtime: the lanes that are here.
#define EMU_SHUFFLE(name, mode, type)                                                      \
    template <class T>                                                                     \
    EMU_INLINE T name(T value, type arg, int width = EMU_WARP) {                           \
        static_assert(sizeof(T) <= 16, "a shuffle moves at most 16 bytes");                \
        emu_shuffle(&value, (int)sizeof(T), mode, (int)arg, width, 0);                     \
        return value;                                                                      \
    }                                                                                      \
    template <class T>                                                                     \
    EMU_INLINE T name##_sync(unsigned long long mask, T value, type arg, int width = EMU_WARP) { \
        emu_shuffle(&value, (int)sizeof(T), mode, (int)arg, width, mask);                  \
        return value;                                                                      \
    }
EMU_SHUFFLE(__shfl, SHUFFLE_INDEX, int)
EMU_SHUFFLE(__shfl_up, SHUFFLE_UP, unsigned)
EMU_SHUFFLE(__shfl_down, SHUFFLE_DOWN, unsigned)
EMU_SHUFFLE(__shfl_xor, SHUFFLE_XOR, int)
#undef EMU_SHUFFLE

EMU_INLINE unsigned long long __ballot(int p) { return emu_vote(VOTE_BALLOT, 0, p != 0, nullptr); }
EMU_INLINE int __any(int p) { return __ballot(p) != 0; }
EMU_INLINE int __all(int p) { return __ballot(!p) == 0; }
EMU_INLINE unsigned long long __ballot_sync(unsigned long long mask, int p) {
    return emu_vote(VOTE_BALLOT, mask, p != 0, nullptr);
}
EMU_INLINE unsigned long long __activemask() { return __ballot(1); }
EMU_INLINE unsigned __lane_id() { return emu_lane(); }
EMU_INLINE unsigned __builtin_amdgcn_mbcnt_lo(unsigned mask, unsigned add) {
    const unsigned lane = emu_lane();
    return add + (unsigned)__popc(lane >= 32 ? mask : mask & ((1u << lane) - 1u));
}
EMU_INLINE unsigned __builtin_amdgcn_mbcnt_hi(unsigned mask, unsigned add) {
    const unsigned lane = emu_lane();
    return add + (unsigned)(lane < 32 ? 0 : __popc(mask & ((1u << (lane - 32)) - 1u)));
}
template <class T>
EMU_INLINE T __builtin_amdgcn_readfirstlane(T value) {
    return __shfl(value, __builtin_ctzll(__ballot(1)));
}
EMU_INLINE int __builtin_amdgcn_ds_bpermute(int address, int value) { return __shfl(value, address >> 2 & (EMU_WARP - 1)); }

#define EMU_LOAD(name)          \
    template <class T>          \
    EMU_INLINE T name(const T* at) { return *at; }
EMU_LOAD(__ldg) EMU_LOAD(__ldcs) EMU_LOAD(__ldca) EMU_LOAD(__ldcg)
#undef EMU_LOAD

// A copy into shared memory: lane l writes at the wave's address plus l elements, at some time
// before a wait for it.
EMU_INLINE void emu_global_load_lds(const void* from, void* to, int size, int offset) {
    const auto base = __builtin_amdgcn_readfirstlane((unsigned long long)to);
    emu_cp_async(emu_shared_address((char*)base + offset) + emu_lane() * (unsigned)size,
                 (const char*)from + offset, (unsigned)size, (unsigned)size);
    emu_cp_async_commit();
}
#define __builtin_amdgcn_global_load_lds(from, to, size, offset, aux) \
    emu_global_load_lds((const void*)(from), (void*)(to), size, offset)
// The count of open vector-memory operations: bits 0-3 and 14-15.
EMU_INLINE void __builtin_amdgcn_s_waitcnt(int code) { emu_cp_async_wait((code & 15) | (code >> 10 & 48)); }

#define __hip_atomic_load(at, order, scope) (*(at))
#define __hip_atomic_store(at, value, order, scope) ((void)atomicExch(at, value))
#define __hip_atomic_fetch_add(at, value, order, scope) atomicAdd(at, value)
#define __hip_atomic_fetch_max(at, value, order, scope) atomicMax(at, value)
#define __hip_atomic_fetch_min(at, value, order, scope) atomicMin(at, value)
#define __hip_atomic_compare_exchange_strong(at, seen, next, good, bad, scope) \
    emu_compare_exchange(at, seen, next)
#define __hip_atomic_exchange(at, value, order, scope) atomicExch(at, value)
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4
#define __HIP_MEMORY_SCOPE_SYSTEM 5
#define unsafeAtomicAdd(at, value) atomicAdd(at, value)
