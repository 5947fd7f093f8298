// layer_norm: Y[i, :] = (X[i, :] - mean) / sqrt(variance + eps) * weight + bias
//   from     layer_norm.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c layer_norm.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin layer_norm.cu -o layer_norm.cubin
//   launch   grid (M), block 256, no dynamic shared memory
//   sizes    M is free
//   needs    X, weight, bias and Y at multiples of 16 bytes
//   text     sha256 482ce3d4f854  (edit freely: `tile2c --merge` keeps your changes)
#include <cuda_fp16.h>

constexpr int N = 8192;
constexpr int block_M = 1;
constexpr float eps = 1e-05f;

// Registers have no address: long loops through them have to be unrolled, short ones are anyway.
#define UNROLL _Pragma("unroll")

// `n` neighbours that move in one access.
template <typename T, int n>
struct alignas(n * sizeof(T)) Pack {
    T at[n];
};

// Reads n neighbours in one access.
template <typename T, int n>
static __device__ void load_vector(T (&dst)[n], const T* src) {
    *reinterpret_cast<Pack<T, n>*>(dst) = *reinterpret_cast<const Pack<T, n>*>(src);
}

// Writes n neighbours in one access.
template <typename T, int n>
static __device__ void store_vector(T* dst, const T (&src)[n]) {
    *reinterpret_cast<Pack<T, n>*>(dst) = *reinterpret_cast<const Pack<T, n>*>(src);
}

// Sum over the 32 lanes of a warp, in every lane.
static __device__ float warp_sum(float x) {
    for (int offset = 16; offset >= 1; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, offset);
        x = x + other;
    }
    return x;
}

extern "C" __global__ void __launch_bounds__(256) layer_norm(
    const half* __restrict__ X,  // [M, N]
    const half* __restrict__ weight,  // [N]
    const half* __restrict__ bias,  // [N]
    half* __restrict__ Y) {  // [M, N]
    __shared__ float mean_parts[8];
    __shared__ float scale_parts[8];
    float x[4][8];  // [block_M, N] over the block
    float squares[4][8];  // [block_M, N] over the block
    float mean;  // [block_M] over the block
    float scale;  // [block_M] over the block

    const int bx = blockIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    // T.copy(X[bx * block_M, 0], x)
    UNROLL
    for (int c = 0; c < 4; ++c) {
        const int i = warp * 1024 + c * 256 + lane * 8;
        __align__(16) half X_part[8];
        load_vector(X_part, &X[size_t(bx * block_M) * N + i]);
        for (int v = 0; v < 8; ++v) x[c][v] = __half2float(X_part[v]);
    }

    // T.reduce_sum(x, mean, dim=1)
    mean = 0.f;
    UNROLL
    for (int c = 0; c < 4; ++c)
        for (int v = 0; v < 8; ++v) mean += x[c][v];
    mean = warp_sum(mean);
    if (lane == 0) mean_parts[warp] = mean;
    __syncthreads();  // mean_parts is complete
    mean = mean_parts[0];
    for (int p = 1; p < 8; ++p) mean += mean_parts[p];

    // for i in T.Parallel(block_M)
    mean /= float(N);

    // Squares of what is left without the mean: the mean of squares would lose digits.
    // for i, j in T.Parallel(block_M, N)
    UNROLL
    for (int c = 0; c < 4; ++c)
        for (int v = 0; v < 8; ++v) {
            x[c][v] -= mean;
            squares[c][v] = x[c][v] * x[c][v];
        }

    // T.reduce_sum(squares, scale, dim=1)
    scale = 0.f;
    UNROLL
    for (int c = 0; c < 4; ++c)
        for (int v = 0; v < 8; ++v) scale += squares[c][v];
    scale = warp_sum(scale);
    if (lane == 0) scale_parts[warp] = scale;
    __syncthreads();  // scale_parts is complete
    scale = scale_parts[0];
    for (int p = 1; p < 8; ++p) scale += scale_parts[p];

    // for i in T.Parallel(block_M)
    scale = rsqrtf(scale / float(N) + eps);

    // for i, j in T.Parallel(block_M, N)
    UNROLL
    for (int c = 0; c < 4; ++c) {
        const int j = warp * 1024 + c * 256 + lane * 8;
        __align__(16) half weight_part[8];
        load_vector(weight_part, &weight[j]);
        __align__(16) half bias_part[8];
        load_vector(bias_part, &bias[j]);
        for (int v = 0; v < 8; ++v)
            x[c][v] = x[c][v] * scale * __half2float(weight_part[v]) + __half2float(bias_part[v]);
    }

    // T.copy(x, Y[bx * block_M, 0])
    UNROLL
    for (int c = 0; c < 4; ++c) {
        const int i = warp * 1024 + c * 256 + lane * 8;
        __align__(16) half Y_part[8];
        for (int v = 0; v < 8; ++v) Y_part[v] = __float2half_rn(x[c][v]);
        store_vector(&Y[size_t(bx * block_M) * N + i], Y_part);
    }
}
