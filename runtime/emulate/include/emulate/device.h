// What every SIMT dialect has: qualifiers, indices, shared memory, entry points. No containers and
// no library headers beyond the integer types: this is compiled anew with every kernel.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "../../core/entry.h"
#include "codes.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define EMU_INLINE inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define EMU_CLUSTER(...) {__VA_ARGS__}
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#ifndef __restrict__
#define __restrict__ __restrict
#endif

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

// One activation of a kernel belongs to one thread, so its indices never change inside it: `const`
// lets the compiler hoist them.
extern "C" {
__attribute__((const)) uint3 emu_thread_index();
__attribute__((const)) uint3 emu_block_index();
__attribute__((const)) uint3 emu_block_size();
__attribute__((const)) uint3 emu_grid_size();
__attribute__((const)) uint32_t emu_lane();

void* emu_shared_array(const char* name, const void* site, uint64_t bytes, uint32_t align);
void* emu_dynamic_shared(const char* name, uint32_t align);
void emu_shared_part(const void* part, uint64_t bytes, const char* name);
uint32_t emu_shared_address(const void* at);
int emu_is_shared(const void* at);
void* emu_shared_pointer(uint32_t address);

uint32_t emu_barrier(uint32_t id, uint32_t expected, int predicate, const char* name);
void emu_barrier_arrive(uint32_t id, uint32_t expected);
void emu_warp_barrier(uint64_t mask);
void emu_wave_barrier();
uint32_t emu_active_mask();
void emu_shuffle(void* value, int bytes, int mode, int arg, int width, uint64_t mask);
uint64_t emu_vote(int kind, uint64_t mask, uint64_t value, int* pred);
uint32_t emu_active_mask_of_32();
void emu_shuffle_of_32(void* value, int bytes, int mode, int arg, int width, uint32_t mask);
uint32_t emu_vote_of_32(int kind, uint32_t mask, uint64_t value, int* pred);
void emu_atomic(int op, int type, void* at, void* old, const void* value, const void* compare);
void emu_fence();
void emu_argument(void* to, void** args, size_t at, size_t bytes);
[[noreturn]] void emu_trap(const char* why);
void emu_sleep();
uint64_t emu_clock();

void* emu_memcpy(void* to, const void* from, size_t n);
void* emu_memset(void* to, int value, size_t n);
int printf(const char*, ...);
}

#define threadIdx (emu_thread_index())
#define blockIdx (emu_block_index())
#define blockDim (emu_block_size())
#define gridDim (emu_grid_size())
#define memcpy emu_memcpy
#define memset emu_memset
#define assert(x) ((x) ? (void)0 : emu_trap("assert(" #x ")"))

namespace emu {

template <bool yes, class T = void>
struct enable {};
template <class T>
struct enable<true, T> {
    using type = T;
};

// Reads one type as another of the same size.
template <class To, class From>
inline To as(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "the operand has another size than the instruction's type");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

// `site` is a lambda, so that every instance of a template has its own array.
template <class T, class Site>
inline T& shared(const char* name, Site site, unsigned align = alignof(T)) {
    return *static_cast<T*>(emu_shared_array(name, site(), sizeof(T), align < alignof(T) ? alignof(T) : align));
}
// A member of a shared struct, known by its own name in reports.
template <class T>
inline T& part(T& member, const char* name) {
    emu_shared_part(&member, sizeof(T), name);
    return member;
}
template <class T>
inline T* dynamic_shared(const char* name, unsigned align = alignof(T)) {
    return static_cast<T*>(emu_dynamic_shared(name, align < alignof(T) ? alignof(T) : align));
}

// A thread's copy of one parameter; fetched by the runtime, so that checks see only the kernel.
template <class P>
struct Argument {
    alignas(P) unsigned char room[sizeof(P)];
    Argument(void** args, size_t at) { emu_argument(room, args, at, sizeof(P)); }
    P& value() { return *reinterpret_cast<P*>(room); }
};

// Calls a kernel with the types of its own parameters.
template <auto kernel>
struct Call;
template <class... P, void (*kernel)(P...)>
struct Call<kernel> {
    template <size_t... at>
    struct Indices {};
    template <size_t n, size_t... at>
    struct Count : Count<n - 1, n - 1, at...> {};
    template <size_t... at>
    struct Count<0, at...> {
        using type = Indices<at...>;
    };
    template <size_t... at>
    static void spread(void** args, Indices<at...>) {
        (void)args;
        kernel(Argument<P>(args, at).value()...);
    }
    static void run(void** args) { spread(args, typename Count<sizeof...(P)>::type()); }
    static constexpr unsigned long long sizes[] = {sizeof(P)..., 0};
};

template <class... P>
constexpr int parameter_count(void (*)(P...)) {
    return int(sizeof...(P));
}
constexpr unsigned first_of(unsigned first = 0, unsigned = 0, unsigned = 0) { return first; }
constexpr unsigned second_of(unsigned = 0, unsigned second = 0, unsigned = 0) { return second; }

}  // namespace emu

#define EMU_SITE \
    [] {                     \
        static const char site = 0; \
        return static_cast<const void*>(&site); \
    }
