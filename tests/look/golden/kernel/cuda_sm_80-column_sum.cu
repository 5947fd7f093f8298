// column_sum: Y[j] = sum of X[:, j].
//   from     column_sum.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c column_sum.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin column_sum.cu -o column_sum.cubin
//   launch   grid ((N + 31) / 32), block 256, no dynamic shared memory
//   sizes    M and N are free
//   text     sha256 f1a2da48056e  (edit freely: `tile2c --merge` keeps your changes)

constexpr int block_M = 128;
constexpr int block_N = 32;

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

// Sum over 4 lanes, each 8 after the one before, in every one of them.
static __device__ float lanes_sum_4_by_8(float x) {
    for (int offset = 16; offset >= 8; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, offset);
        x = x + other;
    }
    return x;
}

// What a block does; `aligned`: rows start where wide accesses may.
template <bool aligned>
static __device__ void column_sum_block(const float* __restrict__ X,  // [M, N]
                                        float* __restrict__ Y,  // [N]
                                        int M, int N) {
    __shared__ float sums_parts[8][32];  // 1 KiB
    __align__(16) float tile[4][4];  // [block_M, block_N] over the block
    __align__(16) float sums[4];  // [block_N] over the block
    float sums_part[4] = {};  // [block_N] each thread's part; T.clear(sums)

    const int bx = blockIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    // for mo in T.serial(T.ceildiv(M, block_M))
    for (int mo = 0; mo < (M + block_M - 1) / block_M; ++mo) {
        // Rows past M arrive as zeros and do not change the sums.
        // T.copy(X[mo * block_M, bx * block_N], tile)
        UNROLL
        for (int r = 0; r < 4; ++r) {
            const int i = r * 32 + threadIdx.x / 8, j = lane % 8 * 4;
            const int row = mo * block_M + i, col = bx * block_N + j;
            const int valid = row < M ? N - col : 0;
            load_whole_vector<aligned>(tile[r], &X[size_t(row) * N + col], valid);
        }

        // T.reduce_sum(tile, sums, dim=0, clear=False)
        for (int v = 0; v < 4; ++v) {
            UNROLL
            for (int r = 0; r < 4; ++r) sums_part[v] += tile[r][v];
        }
    }

    // sums: what the threads have gathered comes together, once
    for (int v = 0; v < 4; ++v) {
        sums_part[v] = lanes_sum_4_by_8(sums_part[v]);
        if (lane / 8 == 0) sums_parts[warp][lane % 8 * 4 + v] = sums_part[v];
    }
    __syncthreads();  // sums_parts is complete
    for (int v = 0; v < 4; ++v) {
        sums[v] = sums_parts[0][lane % 8 * 4 + v];
        for (int p = 1; p < 8; ++p) sums[v] += sums_parts[p][lane % 8 * 4 + v];
    }

    // T.copy(sums, Y[bx * block_N])
    {
        const int i = lane % 8 * 4;
        const int at = bx * block_N + i;
        // several threads hold the same: one writes
        if (threadIdx.x / 8 == 0) store_whole_vector<aligned>(&Y[at], sums, N - at);
    }
}

// Wide accesses stay aligned: X and Y at multiples of 16 bytes, N % 4 == 0.
extern "C" __global__ void __launch_bounds__(256) column_sum(const float* __restrict__ X,  // [M, N]
                                                             float* __restrict__ Y,  // [N]
                                                             int M, int N) {
    column_sum_block<true>(X, Y, M, N);
}

// Any sizes and addresses: element by element where rows may start anywhere.
extern "C" __global__ void __launch_bounds__(256) column_sum_any(
    const float* __restrict__ X,  // [M, N]
    float* __restrict__ Y,  // [N]
    int M, int N) {
    column_sum_block<false>(X, Y, M, N);
}
