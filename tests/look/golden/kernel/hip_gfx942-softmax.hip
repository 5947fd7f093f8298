// softmax: Y[i, :] = softmax(X[i, :]), numerically stable.
//   from     softmax.py by tile2c 0.1.0
//   target   hip:gfx942 (never run on silicon)
//   again    tile2c softmax.py -o . --target hip:gfx942
//   compile  hipcc --genco --offload-arch=gfx942 -O3 -std=c++17 softmax.hip -o softmax.hsaco
//   launch   grid (M), block 256, no dynamic shared memory
//   sizes    M is free
//   needs    X and Y at multiples of 16 bytes
//   text     sha256 7fdbdea73ad7  (edit freely: `tile2c --merge` keeps your changes)
#include <hip/hip_runtime.h>

constexpr float LOG2_E = 1.44269504f;
constexpr int N = 8192;
constexpr int block_M = 1;

// Registers have no address: long loops through them have to be unrolled, short ones are anyway.
#define UNROLL _Pragma("unroll")

constexpr float infinity = __builtin_bit_cast(float, 0x7f800000);

// `n` neighbours that move in one access: a vector, which the compiler keeps in registers.
template <typename T, int n>
using Pack = T __attribute__((ext_vector_type(n)));

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

// Largest over the 64 lanes of a wave, in every lane.
static __device__ float wave_max(float x) {
    for (int offset = 32; offset >= 1; offset /= 2) {
        const float other = __shfl_xor(x, offset);
        x = fmaxf(x, other);
    }
    return x;
}

// Sum over the 64 lanes of a wave, in every lane.
static __device__ float wave_sum(float x) {
    for (int offset = 32; offset >= 1; offset /= 2) {
        const float other = __shfl_xor(x, offset);
        x = x + other;
    }
    return x;
}

extern "C" __global__ void __launch_bounds__(256) softmax(const _Float16* __restrict__ X,  // [M, N]
                                                          _Float16* __restrict__ Y) {  // [M, N]
    __shared__ float row_max_parts[4];
    __shared__ float row_sum_parts[4];
    float x[4][8];  // [block_M, N] over the block
    float row_max;  // [block_M] over the block
    float row_sum;  // [block_M] over the block

    const int bx = blockIdx.x;
    const int lane = threadIdx.x % 64, wave = threadIdx.x / 64;

    // T.copy(X[bx * block_M, 0], x)
    UNROLL
    for (int c = 0; c < 4; ++c) {
        const int i = wave * 2048 + c * 512 + lane * 8;
        __align__(16) _Float16 X_part[8];
        load_vector(X_part, &X[size_t(bx * block_M) * N + i]);
        for (int v = 0; v < 8; ++v) x[c][v] = float(X_part[v]);
    }

    // With the largest element of its row taken off, no exponential can overflow.
    // T.reduce_max(x, row_max, dim=1)
    row_max = -infinity;
    UNROLL
    for (int c = 0; c < 4; ++c)
        for (int v = 0; v < 8; ++v) row_max = fmaxf(row_max, x[c][v]);
    row_max = wave_max(row_max);
    if (lane == 0) row_max_parts[wave] = row_max;
    __syncthreads();  // row_max_parts is complete
    row_max = row_max_parts[0];
    for (int p = 1; p < 4; ++p) row_max = fmaxf(row_max, row_max_parts[p]);

    // for i, j in T.Parallel(block_M, N)
    UNROLL
    for (int c = 0; c < 4; ++c)
        for (int v = 0; v < 8; ++v) x[c][v] = exp2f(x[c][v] * LOG2_E - row_max * LOG2_E);

    // One division a row, not one an element.
    // T.reduce_sum(x, row_sum, dim=1)
    row_sum = 0.f;
    UNROLL
    for (int c = 0; c < 4; ++c)
        for (int v = 0; v < 8; ++v) row_sum += x[c][v];
    row_sum = wave_sum(row_sum);
    if (lane == 0) row_sum_parts[wave] = row_sum;
    __syncthreads();  // row_sum_parts is complete
    row_sum = row_sum_parts[0];
    for (int p = 1; p < 4; ++p) row_sum += row_sum_parts[p];

    // for i in T.Parallel(block_M)
    row_sum = 1.f / row_sum;

    // for i, j in T.Parallel(block_M, N)
    UNROLL
    for (int c = 0; c < 4; ++c)
        for (int v = 0; v < 8; ++v) x[c][v] *= row_sum;

    // T.copy(x, Y[bx * block_M, 0])
    UNROLL
    for (int c = 0; c < 4; ++c) {
        const int i = wave * 2048 + c * 512 + lane * 8;
        __align__(16) _Float16 Y_part[8];
        for (int v = 0; v < 8; ++v) Y_part[v] = _Float16(x[c][v]);
        store_vector(&Y[size_t(bx * block_M) * N + i], Y_part);
    }
}
