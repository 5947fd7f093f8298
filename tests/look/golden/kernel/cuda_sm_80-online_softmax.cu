// online_softmax: Y[i, :] = softmax(X[i, :]), numerically stable, in two passes over the row.
//   from     online_softmax.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c online_softmax.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin online_softmax.cu -o online_softmax.cubin
//   launch   grid ((M + 3) / 4), block 128, no dynamic shared memory
//   sizes    M and N are free
//   text     sha256 41a39f5298a6  (edit freely: `tile2c --merge` keeps your changes)
#include <cuda_fp16.h>

constexpr float LOG2_E = 1.44269504f;
constexpr int block_M = 4;
constexpr int block_N = 1024;

// Registers have no address: long loops through them have to be unrolled, short ones are anyway.
#define UNROLL _Pragma("unroll")

constexpr float infinity = __builtin_bit_cast(float, 0x7f800000);

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

// Largest over the 32 lanes of a warp, in every lane.
static __device__ float warp_max(float x) {
    for (int offset = 16; offset >= 1; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, offset);
        x = fmaxf(x, other);
    }
    return x;
}

// Sum over the 32 lanes of a warp, in every lane.
static __device__ float warp_sum(float x) {
    for (int offset = 16; offset >= 1; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, offset);
        x = x + other;
    }
    return x;
}

// What a block does; `aligned`: rows start where wide accesses may.
template <bool aligned>
static __device__ void online_softmax_block(const half* __restrict__ X,  // [M, N]
                                            half* __restrict__ Y,  // [M, N]
                                            int M, int N) {
    float x[4][8];  // [block_M, block_N] over the block
    float largest;  // [block_M] over the block
    float before;  // [block_M] over the block
    float sums;  // [block_M] over the block
    float sums_part = {};  // [block_M] each thread's part; T.clear(sums)

    const int bx = blockIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    // T.fill(largest, -T.infinity(accum_dtype))
    largest = -infinity;

    // for ko in T.serial(T.ceildiv(N, block_N))
    for (int ko = 0; ko < (N + block_N - 1) / block_N; ++ko) {
        // Columns past N must not take part: exp2 of minus infinity is zero.
        // for i, j in T.Parallel(block_M, block_N)
        UNROLL
        for (int c = 0; c < 4; ++c) {
            const int j = c * 256 + lane * 8;
            const int row = bx * block_M + warp, col = ko * block_N + j;
            __align__(16) half X_part[8];
            const int valid = row < M ? N - col : 0;
            load_whole_vector<aligned>(X_part, &X[size_t(row) * N + col], valid);
            for (int v = 0; v < 8; ++v)
                x[c][v] = col + v < N ? __half2float(X_part[v]) * LOG2_E : -infinity;
        }

        // T.copy(largest, before)
        before = largest;

        // T.reduce_max(x, largest, dim=1, clear=False)
        float largest_part = -infinity;
        UNROLL
        for (int c = 0; c < 4; ++c)
            for (int v = 0; v < 8; ++v) largest_part = fmaxf(largest_part, x[c][v]);
        largest = fmaxf(largest, warp_max(largest_part));

        // for i, j in T.Parallel(block_M, block_N)
        UNROLL
        for (int c = 0; c < 4; ++c)
            for (int v = 0; v < 8; ++v) x[c][v] = exp2f(x[c][v] - largest);

        // for i in T.Parallel(block_M)
        sums_part *= exp2f(before - largest);

        // T.reduce_sum(x, tile_sums, dim=1)
        UNROLL
        for (int c = 0; c < 4; ++c)
            for (int v = 0; v < 8; ++v) sums_part += x[c][v];
    }

    // sums: what the threads have gathered comes together, once
    sums = warp_sum(sums_part);

    // for i in T.Parallel(block_M)
    sums = 1.f / sums;

    // for ko in T.serial(T.ceildiv(N, block_N))
    for (int ko = 0; ko < (N + block_N - 1) / block_N; ++ko) {
        // T.copy(X[bx * block_M, ko * block_N], x)
        UNROLL
        for (int c = 0; c < 4; ++c) {
            const int j = c * 256 + lane * 8;
            const int row = bx * block_M + warp, col = ko * block_N + j;
            __align__(16) half X_part[8];
            const int valid = row < M ? N - col : 0;
            load_whole_vector<aligned>(X_part, &X[size_t(row) * N + col], valid);
            for (int v = 0; v < 8; ++v) x[c][v] = __half2float(X_part[v]);
        }

        // for i, j in T.Parallel(block_M, block_N)
        UNROLL
        for (int c = 0; c < 4; ++c)
            for (int v = 0; v < 8; ++v) x[c][v] = exp2f(x[c][v] * LOG2_E - largest) * sums;

        // T.copy(x, Y[bx * block_M, ko * block_N])
        UNROLL
        for (int c = 0; c < 4; ++c) {
            const int j = c * 256 + lane * 8;
            const int row = bx * block_M + warp, col = ko * block_N + j;
            if (row >= M) continue;  // the last tile may reach past the edge
            __align__(16) half Y_part[8];
            for (int v = 0; v < 8; ++v) Y_part[v] = __float2half_rn(x[c][v]);
            store_whole_vector<aligned>(&Y[size_t(row) * N + col], Y_part, N - col);
        }
    }
}

// Wide accesses stay aligned: X and Y at multiples of 16 bytes, N % 8 == 0.
extern "C" __global__ void __launch_bounds__(128) online_softmax(
    const half* __restrict__ X,  // [M, N]
    half* __restrict__ Y,  // [M, N]
    int M, int N) {
    online_softmax_block<true>(X, Y, M, N);
}

// Any sizes and addresses: element by element where rows may start anywhere.
extern "C" __global__ void __launch_bounds__(128) online_softmax_any(
    const half* __restrict__ X,  // [M, N]
    half* __restrict__ Y,  // [M, N]
    int M, int N) {
    online_softmax_block<false>(X, Y, M, N);
}
