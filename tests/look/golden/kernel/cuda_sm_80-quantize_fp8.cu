// quantize_fp8: Q * scales = X, up to rounding; a group's largest becomes the largest of fp8.
//   from     quantize_fp8.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c quantize_fp8.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin quantize_fp8.cu -o quantize_fp8.cubin
//   launch   grid ((N + 127) / 128, (M + 15) / 16), block 128, no dynamic shared memory
//   sizes    M and N are free
//   text     sha256 dae8ea41d6ed  (edit freely: `tile2c --merge` keeps your changes)
#include <cuda_fp16.h>
#include <cuda_fp8.h>

constexpr int block_M = 16;
constexpr int group = 128;
constexpr float largest = 448.f;

// Registers have no address: long loops through them have to be unrolled, short ones are anyway.
#define UNROLL _Pragma("unroll")

// `n` neighbours that move in one access.
template <typename T, int n>
struct alignas(n * sizeof(T)) Pack {
    T at[n];
};

// Reads n neighbours in one access, or zeros where `valid` is not positive: none straddles the
// edge. Where rows are not aligned, element by element.
template <bool aligned, typename T, int n>
static __device__ void load_whole_vector(T (&dst)[n], const T* src, int valid) {
    if (aligned) {
        Pack<T, n> read = {};
        if (valid > 0) read = *reinterpret_cast<const Pack<T, n>*>(src);
        *reinterpret_cast<Pack<T, n>*>(dst) = read;
    } else {
        for (int v = 0; v < n; ++v) dst[v] = v < valid ? src[v] : T();
    }
}

// Writes n neighbours in one access if `valid` is positive: none straddles the edge.
// Where rows are not aligned, element by element.
template <bool aligned, typename T, int n>
static __device__ void store_whole_vector(T* dst, const T (&src)[n], int valid) {
    if (aligned) {
        if (valid > 0)
            *reinterpret_cast<Pack<T, n>*>(dst) = *reinterpret_cast<const Pack<T, n>*>(src);
    } else {
        for (int v = 0; v < n; ++v)
            if (v < valid) dst[v] = src[v];
    }
}

// x between low and high; NaN stays NaN.
template <typename T>
static __device__ T clamp(T x, T low, T high) {
    return x < low ? low : x > high ? high : x;
}

// Largest over 16 neighbouring lanes, in every one of them.
static __device__ float lanes_max_16(float x) {
    for (int offset = 8; offset >= 1; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, offset);
        x = fmaxf(x, other);
    }
    return x;
}

// What a block does; `aligned`: rows start where wide accesses may.
template <bool aligned>
static __device__ void quantize_fp8_block(
    const half* __restrict__ X,  // [M, N]
    __nv_fp8_e4m3* __restrict__ Q,  // [M, N]
    float* __restrict__ scales,  // [M, (N + group - 1) / group]
    int M, int N) {
    float x[2][8];  // [block_M, group] over the block
    float scale[2];  // [block_M] over the block
    float inverse[2];  // [block_M] over the block

    const int bx = blockIdx.x, by = blockIdx.y;
    const int lane = threadIdx.x % 32;

    // T.copy(X[by * block_M, bx * group], x)
    UNROLL
    for (int r = 0; r < 2; ++r) {
        const int i = r * 8 + threadIdx.x / 16, j = lane % 16 * 8;
        const int row = by * block_M + i, col = bx * group + j;
        __align__(16) half X_part[8];
        const int valid = row < M ? N - col : 0;
        load_whole_vector<aligned>(X_part, &X[size_t(row) * N + col], valid);
        for (int v = 0; v < 8; ++v) x[r][v] = __half2float(X_part[v]);
    }

    // T.reduce_absmax(x, scale, dim=1)
    for (int r = 0; r < 2; ++r) {
        scale[r] = 0.f;
        UNROLL
        for (int v = 0; v < 8; ++v) scale[r] = fmaxf(scale[r], fabsf(x[r][v]));
        scale[r] = lanes_max_16(scale[r]);
    }

    // for i in T.Parallel(block_M)
    for (int r = 0; r < 2; ++r) {
        // A group of zeros gets a scale that can be divided by.
        scale[r] = fmaxf(scale[r], 0.0001f) / largest;
        inverse[r] = 1.f / scale[r];
    }

    // for i, j in T.Parallel(block_M, group)
    UNROLL
    for (int r = 0; r < 2; ++r)
        for (int v = 0; v < 8; ++v) x[r][v] = clamp(x[r][v] * inverse[r], -largest, largest);

    // T.copy(x, Q[by * block_M, bx * group])
    UNROLL
    for (int r = 0; r < 2; ++r) {
        const int i = r * 8 + threadIdx.x / 16, j = lane % 16 * 8;
        const int row = by * block_M + i, col = bx * group + j;
        if (row >= M) continue;  // the last tile may reach past the edge
        __align__(8) __nv_fp8_e4m3 Q_part[8];
        for (int v = 0; v < 8; ++v) Q_part[v] = __nv_fp8_e4m3(x[r][v]);
        store_whole_vector<aligned>(&Q[size_t(row) * N + col], Q_part, N - col);
    }

    // for i in T.Parallel(block_M)
    for (int r = 0; r < 2; ++r) {
        const int i = r * 8 + threadIdx.x / 16;
        const int row = by * block_M + i;
        // several threads hold the same: one writes; the last tile may reach past the edge
        if (lane % 16 != 0 || row >= M) continue;
        scales[size_t(row) * ((N + group - 1) / group) + bx] = scale[r];
    }
}

// Wide accesses stay aligned: X at multiples of 16 bytes, Q at multiples of 8 bytes, N % 8 == 0.
extern "C" __global__ void __launch_bounds__(128) quantize_fp8(
    const half* __restrict__ X,  // [M, N]
    __nv_fp8_e4m3* __restrict__ Q,  // [M, N]
    float* __restrict__ scales,  // [M, (N + group - 1) / group]
    int M, int N) {
    quantize_fp8_block<true>(X, Q, scales, M, N);
}

// Any sizes and addresses: element by element where rows may start anywhere.
extern "C" __global__ void __launch_bounds__(128) quantize_fp8_any(
    const half* __restrict__ X,  // [M, N]
    __nv_fp8_e4m3* __restrict__ Q,  // [M, N]
    float* __restrict__ scales,  // [M, (N + group - 1) / group]
    int M, int N) {
    quantize_fp8_block<false>(X, Q, scales, M, N);
}
