// What the kernels use of HIP's device side, so that clang compiles them where no ROCm is installed:
//   clang -x hip --offload-device-only -nogpuinc -nogpulib -I tests/hip_prelude KERNEL.hip
// Declarations as the vendor documents them, on the compiler's own builtins; for type checks and
// assembly, not for running.
#pragma once

#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))

typedef __SIZE_TYPE__ size_t;

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

// ---- indices

#define TILE2C_INDEX(name, builtin)                                       \
    struct name {                                                         \
        struct X { __device__ operator unsigned() const { return builtin##_x(); } } x; \
        struct Y { __device__ operator unsigned() const { return builtin##_y(); } } y; \
        struct Z { __device__ operator unsigned() const { return builtin##_z(); } } z; \
    }
TILE2C_INDEX(ThreadIndex, __builtin_amdgcn_workitem_id);
TILE2C_INDEX(BlockIndex, __builtin_amdgcn_workgroup_id);
#undef TILE2C_INDEX

struct BlockSize {
    struct X { __device__ operator unsigned() const { return __builtin_amdgcn_workgroup_size_x(); } } x;
    struct Y { __device__ operator unsigned() const { return __builtin_amdgcn_workgroup_size_y(); } } y;
    struct Z { __device__ operator unsigned() const { return __builtin_amdgcn_workgroup_size_z(); } } z;
};

struct GridSize {  // in blocks; the hardware counts threads
    struct X {
        __device__ operator unsigned() const {
            return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
        }
    } x;
    struct Y {
        __device__ operator unsigned() const {
            return __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y();
        }
    } y;
    struct Z {
        __device__ operator unsigned() const {
            return __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z();
        }
    } z;
};

static constexpr __device__ ThreadIndex threadIdx{};
static constexpr __device__ BlockIndex blockIdx{};
static constexpr __device__ BlockSize blockDim{};
static constexpr __device__ GridSize gridDim{};

// ---- synchronization and shuffles

static __device__ inline void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

static __device__ inline float atomicAdd(float* address, float value) {
    return __hip_atomic_fetch_add(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
static __device__ inline int __shfl_xor(int value, int mask) {
    const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
    return __builtin_amdgcn_ds_bpermute((lane ^ mask) << 2, value);
}
static __device__ inline unsigned __shfl_xor(unsigned value, int mask) {
    return unsigned(__shfl_xor(int(value), mask));
}
static __device__ inline float __shfl_xor(float value, int mask) {
    return __builtin_bit_cast(float, __shfl_xor(__builtin_bit_cast(int, value), mask));
}
static __device__ inline long long __shfl_xor(long long value, int mask) {
    const unsigned low = __shfl_xor(unsigned(value), mask);
    const long long high = __shfl_xor(int(value >> 32), mask);
    return high << 32 | low;
}
static __device__ inline unsigned long long __shfl_xor(unsigned long long value, int mask) {
    return __shfl_xor((long long)value, mask);
}
static __device__ inline double __shfl_xor(double value, int mask) {
    return __builtin_bit_cast(double, __shfl_xor(__builtin_bit_cast(long long, value), mask));
}
// From one lane, or from so many lanes below; only for groups as wide as a wave.
static __device__ inline float __shfl(float value, int lane, int) {
    return __builtin_bit_cast(
        float, __builtin_amdgcn_ds_bpermute(lane << 2, __builtin_bit_cast(int, value)));
}
static __device__ inline float __shfl_up(float value, int below, int width) {
    const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
    return __shfl(value, lane >= below ? lane - below : lane, width);
}

// ---- arithmetic

#define TILE2C_FLOAT_1(name) \
    static __device__ inline float name##f(float x) { return __builtin_##name##f(x); }
#define TILE2C_FLOAT_2(name) \
    static __device__ inline float name##f(float x, float y) { return __builtin_##name##f(x, y); }
#define TILE2C_DOUBLE_1(name) \
    static __device__ inline double name(double x) { return __builtin_##name(x); }
#define TILE2C_DOUBLE_2(name) \
    static __device__ inline double name(double x, double y) { return __builtin_##name(x, y); }
// The compiler expands these itself; what needs the vendor's bitcode library is left out.
TILE2C_FLOAT_1(exp)
TILE2C_FLOAT_1(exp2)
TILE2C_FLOAT_1(exp10)
TILE2C_FLOAT_1(log)
TILE2C_FLOAT_1(log2)
TILE2C_FLOAT_1(log10)
TILE2C_FLOAT_1(sqrt)
TILE2C_FLOAT_1(sin)
TILE2C_FLOAT_1(cos)
TILE2C_FLOAT_1(fabs)
TILE2C_FLOAT_1(floor)
TILE2C_FLOAT_1(ceil)
TILE2C_FLOAT_1(trunc)
TILE2C_FLOAT_1(rint)
TILE2C_FLOAT_2(fmax)
TILE2C_FLOAT_2(fmin)
TILE2C_FLOAT_2(copysign)
TILE2C_DOUBLE_1(sqrt)
TILE2C_DOUBLE_1(fabs)
TILE2C_DOUBLE_1(floor)
TILE2C_DOUBLE_1(ceil)
TILE2C_DOUBLE_1(trunc)
TILE2C_DOUBLE_1(rint)
TILE2C_DOUBLE_2(fmax)
TILE2C_DOUBLE_2(fmin)
TILE2C_DOUBLE_2(copysign)
#undef TILE2C_FLOAT_1
#undef TILE2C_FLOAT_2
#undef TILE2C_DOUBLE_1
#undef TILE2C_DOUBLE_2

static __device__ inline float rsqrtf(float x) { return 1.f / __builtin_sqrtf(x); }

template <typename T>
static __device__ constexpr T min(T a, T b) {
    return b < a ? b : a;
}
template <typename T>
static __device__ constexpr T max(T a, T b) {
    return a < b ? b : a;
}
