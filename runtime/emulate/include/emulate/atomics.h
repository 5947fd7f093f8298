// Atomic functions; which types an operation takes follows the device's own list.
#pragma once

namespace emu {
template <class T>
struct AtomicType;
#define EMU_ATOMIC_TYPE(type, code)           \
    template <>                               \
    struct AtomicType<type> {                 \
        static constexpr int value = code;    \
    };
EMU_ATOMIC_TYPE(int, TYPE_S32)
EMU_ATOMIC_TYPE(unsigned, TYPE_U32)
EMU_ATOMIC_TYPE(long long, TYPE_S64)
EMU_ATOMIC_TYPE(unsigned long long, TYPE_U64)
EMU_ATOMIC_TYPE(long, TYPE_S64)
EMU_ATOMIC_TYPE(unsigned long, TYPE_U64)
EMU_ATOMIC_TYPE(float, TYPE_F32)
EMU_ATOMIC_TYPE(double, TYPE_F64)
EMU_ATOMIC_TYPE(float2, TYPE_F32X2)
EMU_ATOMIC_TYPE(float4, TYPE_F32X4)

template <class T>
EMU_INLINE T atomic(int op, T* at, T value) {
    T old;
    emu_atomic(op, AtomicType<T>::value, (void*)at, &old, &value, nullptr);
    return old;
}
template <class T>
struct same {
    using type = T;
};
}  // namespace emu

#define EMU_ATOMIC(name, op)                                                          \
    template <class T>                                                                \
    EMU_INLINE T name(T* at, typename emu::same<T>::type value) {                     \
        return emu::atomic<T>(op, at, value);                                         \
    }                                                                                 \
    template <class T>                                                                \
    EMU_INLINE T name##_block(T* at, typename emu::same<T>::type value) {             \
        return emu::atomic<T>(op, at, value);                                         \
    }                                                                                 \
    template <class T>                                                                \
    EMU_INLINE T name##_system(T* at, typename emu::same<T>::type value) {            \
        return emu::atomic<T>(op, at, value);                                         \
    }
EMU_ATOMIC(atomicAdd, ATOMIC_ADD)
EMU_ATOMIC(atomicMin, ATOMIC_MIN)
EMU_ATOMIC(atomicMax, ATOMIC_MAX)
EMU_ATOMIC(atomicAnd, ATOMIC_AND)
EMU_ATOMIC(atomicOr, ATOMIC_OR)
EMU_ATOMIC(atomicXor, ATOMIC_XOR)
EMU_ATOMIC(atomicExch, ATOMIC_EXCHANGE)
EMU_ATOMIC(atomicInc, ATOMIC_INC)
EMU_ATOMIC(atomicDec, ATOMIC_DEC)
#undef EMU_ATOMIC
template <class T>
EMU_INLINE T atomicSub(T* at, typename emu::same<T>::type value) {
    return emu::atomic<T>(ATOMIC_ADD, at, (T)-value);
}
template <class T>
EMU_INLINE T atomicCAS(T* at, typename emu::same<T>::type compare, typename emu::same<T>::type value) {
    T old;
    constexpr int type = sizeof(T) == 2 ? TYPE_F16 : sizeof(T) == 4 ? TYPE_U32 : TYPE_U64;
    emu_atomic(ATOMIC_CAS, type, (void*)at, &old, &value, &compare);
    return old;
}
// As C++'s: `seen` becomes what was there.
template <class T>
EMU_INLINE bool emu_compare_exchange(T* at, T* seen, T next) {
    const T wanted = *seen;
    *seen = atomicCAS(at, wanted, next);
    return *seen == wanted;
}
