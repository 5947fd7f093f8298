// row_sum: Y[i] = sum of X[i, :].
//   from     row_sum.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c row_sum.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin row_sum.cu -o row_sum.cubin
//   launch   grid ((M + 7) / 8), block 128, no dynamic shared memory
//   sizes    M and N are free
//   text     sha256 75182ea8262e  (edit freely: `tile2c --merge` keeps your changes)

constexpr int block_M = 8;
constexpr int block_N = 512;

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
static __device__ void row_sum_block(const float* __restrict__ X,  // [M, N]
                                     float* __restrict__ Y,  // [M]
                                     int M, int N) {
    __align__(16) float tile[2][4][4];  // [block_M, block_N] over the block
    float sums[2];  // [block_M] over the block
    float sums_part[2] = {};  // [block_M] each thread's part; T.clear(sums)

    const int bx = blockIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    // for ko in T.serial(T.ceildiv(N, block_N))
    for (int ko = 0; ko < (N + block_N - 1) / block_N; ++ko) {
        // Columns past N arrive as zeros and do not change the sums.
        // T.copy(X[bx * block_M, ko * block_N], tile)
        UNROLL
        for (int r = 0; r < 2; ++r)
            for (int c = 0; c < 4; ++c) {
                const int i = r * 4 + warp, j = c * 128 + lane * 4;
                const int row = bx * block_M + i, col = ko * block_N + j;
                const int valid = row < M ? N - col : 0;
                load_whole_vector<aligned>(tile[r][c], &X[size_t(row) * N + col], valid);
            }

        // T.reduce_sum(tile, sums, dim=1, clear=False)
        for (int r = 0; r < 2; ++r) {
            UNROLL
            for (int c = 0; c < 4; ++c)
                for (int v = 0; v < 4; ++v) sums_part[r] += tile[r][c][v];
        }
    }

    // sums: what the threads have gathered comes together, once
    for (int r = 0; r < 2; ++r) sums[r] = warp_sum(sums_part[r]);

    // T.copy(sums, Y[bx * block_M])
    for (int r = 0; r < 2; ++r) {
        const int i = r * 4 + warp;
        const int at = bx * block_M + i;
        // several threads hold the same: one writes; the last tile may reach past the edge
        if (lane != 0 || at >= M) continue;
        Y[at] = sums[r];
    }
}

// Wide accesses stay aligned: X at multiples of 16 bytes, N % 4 == 0.
extern "C" __global__ void __launch_bounds__(128) row_sum(const float* __restrict__ X,  // [M, N]
                                                          float* __restrict__ Y,  // [M]
                                                          int M, int N) {
    row_sum_block<true>(X, Y, M, N);
}

// Any sizes and addresses: element by element where rows may start anywhere.
extern "C" __global__ void __launch_bounds__(128) row_sum_any(
    const float* __restrict__ X,  // [M, N]
    float* __restrict__ Y,  // [M]
    int M, int N) {
    row_sum_block<false>(X, Y, M, N);
}
