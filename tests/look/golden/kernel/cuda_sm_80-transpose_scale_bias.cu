// transpose_scale_bias: Y[j, i] = X[i, j] * scale + bias[j]
//   from     transpose_scale_bias.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c transpose_scale_bias.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin transpose_scale_bias.cu
//            -o transpose_scale_bias.cubin
//   launch   grid ((N + 63) / 64, (M + 63) / 64), block 256, no dynamic shared memory
//   sizes    M and N are free
//   text     sha256 fa3c761c2eb0  (edit freely: `tile2c --merge` keeps your changes)
#include <cuda_fp16.h>

constexpr int block_M = 64;
constexpr int block_N = 64;
constexpr float scale = 0.5f;

// Registers have no address: long loops through them have to be unrolled, short ones are anyway.
#define UNROLL _Pragma("unroll")

// tile: chunk c of 8 elements of a row lies at c ^ row / 8 % 8, so that rows that are read together
// fall into different groups of banks.
static __device__ int tile_col(unsigned row, unsigned col) { return col ^ row / 8 % 8 * 8; }

// `n` neighbours that move in one access.
template <typename T, int n>
struct alignas(n * sizeof(T)) Pack {
    T at[n];
};

// Writes n neighbours in one access.
template <typename T, int n>
static __device__ void store_vector(T* dst, const T (&src)[n]) {
    *reinterpret_cast<Pack<T, n>*>(dst) = *reinterpret_cast<const Pack<T, n>*>(src);
}

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

// What a block does; `aligned`: rows start where wide accesses may.
template <bool aligned>
static __device__ void transpose_scale_bias_block(const half* __restrict__ X,  // [M, N]
                                                  const half* __restrict__ bias,  // [N]
                                                  half* __restrict__ Y,  // [N, M]
                                                  int M, int N) {
    __shared__ __align__(128) half tile[block_M][block_N];  // 8 KiB

    const int bx = blockIdx.x, by = blockIdx.y;

    // T.copy(X[by * block_M, bx * block_N], tile)
    UNROLL
    for (int turn = 0; turn < 2; ++turn) {
        const int i = turn * 32 + threadIdx.x / 8, j = threadIdx.x % 8 * 8;
        const int row = by * block_M + i, col = bx * block_N + j;
        __align__(16) half X_part[8];
        const int valid = row < M ? N - col : 0;
        load_whole_vector<aligned>(X_part, &X[size_t(row) * N + col], valid);
        store_vector(&tile[i][tile_col(i, j)], X_part);
    }
    __syncthreads();  // tile is complete

    // Neighbours in i are neighbours in a row of Y, and lie a row apart in the tile.
    // for j, i in T.Parallel(block_N, block_M)
    UNROLL
    for (int turn = 0; turn < 2; ++turn) {
        const int j = turn * 32 + threadIdx.x / 8, i = threadIdx.x % 8 * 8;
        const int row = bx * block_N + j, col = by * block_M + i;
        if (row >= N) continue;  // the last tile may reach past the edge
        __align__(16) half Y_part[8];
        for (int v = 0; v < 8; ++v) {
            const float x = __half2float(tile[i + v][tile_col(i + v, j)]);
            Y_part[v] = __float2half_rn(x * scale + __half2float(bias[row]));
        }
        store_whole_vector<aligned>(&Y[size_t(row) * M + col], Y_part, M - col);
    }
}

// Wide accesses stay aligned: X and Y at multiples of 16 bytes, N % 8 == 0, M % 8 == 0.
extern "C" __global__ void __launch_bounds__(256) transpose_scale_bias(
    const half* __restrict__ X,  // [M, N]
    const half* __restrict__ bias,  // [N]
    half* __restrict__ Y,  // [N, M]
    int M, int N) {
    transpose_scale_bias_block<true>(X, bias, Y, M, N);
}

// Any sizes and addresses: element by element where rows may start anywhere.
extern "C" __global__ void __launch_bounds__(256) transpose_scale_bias_any(
    const half* __restrict__ X,  // [M, N]
    const half* __restrict__ bias,  // [N]
    half* __restrict__ Y,  // [N, M]
    int M, int N) {
    transpose_scale_bias_block<false>(X, bias, Y, M, N);
}
