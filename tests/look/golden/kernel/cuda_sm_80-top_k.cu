// top_k: values[i, :] = the k largest of X[i, :], largest first; indices[i, :] = their columns.
//   from     top_k.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c top_k.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin top_k.cu -o top_k.cubin
//   launch   grid ((M + 15) / 16), block 128, no dynamic shared memory
//   sizes    M is free
//   needs    X at multiples of 16 bytes
//   text     sha256 832dd2a00ec7  (edit freely: `tile2c --merge` keeps your changes)
//
// Of equal elements the one with the largest column comes first.

constexpr int N = 128;
constexpr int k = 6;
constexpr int block_M = 16;

// Registers have no address: long loops through them have to be unrolled, short ones are anyway.
#define UNROLL _Pragma("unroll")

constexpr float infinity = __builtin_bit_cast(float, 0x7f800000);

// `n` neighbours that move in one access.
template <typename T, int n>
struct alignas(n * sizeof(T)) Pack {
    T at[n];
};

// Reads n neighbours in one access, or zeros where `valid` is not positive: none straddles the
// edge.
template <typename T, int n>
static __device__ void load_whole_vector(T (&dst)[n], const T* src, int valid) {
    Pack<T, n> read = {};
    if (valid > 0) read = *reinterpret_cast<const Pack<T, n>*>(src);
    *reinterpret_cast<Pack<T, n>*>(dst) = read;
}

// Largest over the 32 lanes of a warp, in every lane.
static __device__ float warp_max(float x) {
    for (int offset = 16; offset >= 1; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, offset);
        x = fmaxf(x, other);
    }
    return x;
}

// Largest over the 32 lanes of a warp, in every lane.
static __device__ int warp_max_int32(int x) {
    for (int offset = 16; offset >= 1; offset /= 2) {
        const int other = __shfl_xor_sync(0xffffffffu, x, offset);
        x = max(x, other);
    }
    return x;
}

extern "C" __global__ void __launch_bounds__(128) top_k(const float* __restrict__ X,  // [M, N]
                                                        float* __restrict__ values,  // [M, k]
                                                        int* __restrict__ indices,  // [M, k]
                                                        int M) {
    __align__(16) float x[4][4];  // [block_M, N] over the block
    int columns[4][4];  // [block_M, N] over the block
    float largest[4];  // [block_M] over the block
    int column[4];  // [block_M] over the block

    const int bx = blockIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    // T.copy(X[bx * block_M, 0], x)
    UNROLL
    for (int r = 0; r < 4; ++r) {
        const int i = r * 4 + warp, j = lane * 4;
        const int row = bx * block_M + i;
        const int valid = row < M ? 4 : 0;
        load_whole_vector(x[r], &X[size_t(row) * N + j], valid);
    }

    // for step in T.serial(k)
    for (int step = 0; step < k; ++step) {
        // T.reduce_max(x, largest, dim=1)
        for (int r = 0; r < 4; ++r) {
            largest[r] = -infinity;
            UNROLL
            for (int v = 0; v < 4; ++v) largest[r] = fmaxf(largest[r], x[r][v]);
            largest[r] = warp_max(largest[r]);
        }

        // for i, j in T.Parallel(block_M, N)
        UNROLL
        for (int r = 0; r < 4; ++r)
            for (int v = 0; v < 4; ++v) {
                const int j = lane * 4 + v;
                columns[r][v] = x[r][v] == largest[r] ? j : -1;
            }

        // T.reduce_max(columns, column, dim=1)
        for (int r = 0; r < 4; ++r) {
            column[r] = -2147483647 - 1;
            UNROLL
            for (int v = 0; v < 4; ++v) column[r] = max(column[r], columns[r][v]);
            column[r] = warp_max_int32(column[r]);
        }

        // What has been taken never is the largest again.
        // for i, j in T.Parallel(block_M, N)
        UNROLL
        for (int r = 0; r < 4; ++r)
            for (int v = 0; v < 4; ++v) {
                const int j = lane * 4 + v;
                x[r][v] = column[r] == j ? -infinity : x[r][v];
            }

        // for i in T.Parallel(block_M)
        for (int r = 0; r < 4; ++r) {
            const int i = r * 4 + warp;
            const int row = bx * block_M + i;
            // several threads hold the same: one writes; the last tile may reach past the edge
            if (lane != 0 || row >= M) continue;
            values[size_t(row) * k + step] = largest[r];
            indices[size_t(row) * k + step] = column[r];
        }
    }
}
