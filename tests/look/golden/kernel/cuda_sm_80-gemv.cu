// gemv: y = A @ x
//   from     gemv.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c gemv.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin gemv.cu -o gemv.cubin
//   launch   grid ((M + 3) / 4), block 128, no dynamic shared memory
//   sizes    M and K are free
//   text     sha256 77d1dfba44e9  (edit freely: `tile2c --merge` keeps your changes)
#include <cuda_fp16.h>

constexpr int block_M = 4;
constexpr int block_K = 1024;

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
static __device__ void gemv_block(const half* __restrict__ A,  // [M, K]
                                  const half* __restrict__ x,  // [K]
                                  half* __restrict__ y,  // [M]
                                  int M, int K) {
    __align__(16) half a[4][8];  // [block_M, block_K] over the block
    __align__(16) half part[4][8];  // [block_K] over the block
    float products[4][8];  // [block_M, block_K] over the block
    float sums;  // [block_M] over the block
    float sums_part = {};  // [block_M] each thread's part; T.clear(sums)

    const int bx = blockIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    // for ko in T.serial(T.ceildiv(K, block_K))
    for (int ko = 0; ko < (K + block_K - 1) / block_K; ++ko) {
        // Past K both are zeros and add nothing.
        // T.copy(A[bx * block_M, ko * block_K], a)
        UNROLL
        for (int c = 0; c < 4; ++c) {
            const int j = c * 256 + lane * 8;
            const int row = bx * block_M + warp, col = ko * block_K + j;
            const int valid = row < M ? K - col : 0;
            load_whole_vector<aligned>(a[c], &A[size_t(row) * K + col], valid);
        }

        // T.copy(x[ko * block_K], part)
        UNROLL
        for (int c = 0; c < 4; ++c) {
            const int i = c * 256 + lane * 8;
            const int at = ko * block_K + i;
            load_whole_vector<aligned>(part[c], &x[at], K - at);
        }

        // for i, k in T.Parallel(block_M, block_K)
        UNROLL
        for (int c = 0; c < 4; ++c)
            for (int v = 0; v < 8; ++v)
                products[c][v] = __half2float(a[c][v]) * __half2float(part[c][v]);

        // T.reduce_sum(products, sums, dim=1, clear=False)
        UNROLL
        for (int c = 0; c < 4; ++c)
            for (int v = 0; v < 8; ++v) sums_part += products[c][v];
    }

    // sums: what the threads have gathered comes together, once
    sums = warp_sum(sums_part);

    // T.copy(sums, y[bx * block_M])
    {
        const int at = bx * block_M + warp;
        // several threads hold the same: one writes; the last tile may reach past the edge
        if (lane == 0 && at < M) {
            y[at] = __float2half_rn(sums);
        }
    }
}

// Wide accesses stay aligned: A and x at multiples of 16 bytes, K % 8 == 0.
extern "C" __global__ void __launch_bounds__(128) gemv(const half* __restrict__ A,  // [M, K]
                                                       const half* __restrict__ x,  // [K]
                                                       half* __restrict__ y,  // [M]
                                                       int M, int K) {
    gemv_block<true>(A, x, y, M, K);
}

// Any sizes and addresses: element by element where rows may start anywhere.
extern "C" __global__ void __launch_bounds__(128) gemv_any(const half* __restrict__ A,  // [M, K]
                                                           const half* __restrict__ x,  // [K]
                                                           half* __restrict__ y,  // [M]
                                                           int M, int K) {
    gemv_block<false>(A, x, y, M, K);
}
