// What `T __attribute__((ext_vector_type(n)))` becomes: g++ has no such attribute.
#pragma once

namespace emu {

template <class T, int n>
struct VecData {
    T v[n];
};
template <class T>
struct VecData<T, 2> {
    union {
        T v[2];
        struct {
            T x, y;
        };
    };
};
template <class T>
struct VecData<T, 3> {
    union {
        T v[3];
        struct {
            T x, y, z;
        };
    };
};
template <class T>
struct VecData<T, 4> {
    union {
        T v[4];
        struct {
            T x, y, z, w;
        };
    };
};

constexpr int vec_align(int bytes) {
    int a = 1;
    while (a < bytes) a *= 2;
    return a;
}

template <class T, int n>
struct alignas(vec_align((int)sizeof(T) * n)) Vec : VecData<T, n> {
    Vec() = default;
    // One value fills all, more are the elements in order.
    template <class A>
    EMU_INLINE Vec(A all) {
        for (int i = 0; i < n; ++i) this->v[i] = (T)all;
    }
    template <class A, class B, class... R>
    EMU_INLINE Vec(A a, B b, R... rest) {
        static_assert(2 + sizeof...(R) <= n, "more values than the vector has elements");
        const T given[] = {(T)a, (T)b, (T)rest...};
        for (int i = 0; i < n; ++i) this->v[i] = i < 2 + (int)sizeof...(R) ? given[i] : T(0);
    }
    EMU_INLINE T& operator[](int i) { return this->v[i]; }
    EMU_INLINE const T& operator[](int i) const { return this->v[i]; }
    // A cast between vectors of one size keeps the bits.
    template <class U, int m>
    EMU_INLINE explicit operator Vec<U, m>() const {
        return as<Vec<U, m>>(*this);
    }
};

#define EMU_OP(op)                                                                \
    template <class T, int n>                                                     \
    EMU_INLINE Vec<T, n> operator op(Vec<T, n> a, Vec<T, n> b) {                  \
        for (int i = 0; i < n; ++i) a.v[i] = (T)(a.v[i] op b.v[i]);               \
        return a;                                                                 \
    }                                                                             \
    template <class T, int n, class S>                                            \
    EMU_INLINE Vec<T, n> operator op(Vec<T, n> a, S b) {                          \
        for (int i = 0; i < n; ++i) a.v[i] = (T)(a.v[i] op(T) b);                 \
        return a;                                                                 \
    }                                                                             \
    template <class T, int n, class S>                                            \
    EMU_INLINE Vec<T, n>& operator op##=(Vec<T, n>& a, S b) { return a = a op b; }
EMU_OP(+)
EMU_OP(-)
EMU_OP(*)
EMU_OP(/)
#undef EMU_OP
template <class T, int n>
EMU_INLINE Vec<T, n> operator-(Vec<T, n> a) {
    for (int i = 0; i < n; ++i) a.v[i] = -a.v[i];
    return a;
}

template <class To, class T, int n>
EMU_INLINE To convert_vector(Vec<T, n> a) {
    To to;
    for (int i = 0; i < n; ++i) to[i] = static_cast<__typeof__(to[0] + 0)>(a[i]);
    return to;
}

}  // namespace emu

#define __builtin_convertvector(value, type) (emu::convert_vector<type>(value))
