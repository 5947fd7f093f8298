// cumsum: Y[i, j] = X[i, 0] + ... + X[i, j]
//   from     cumsum.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c cumsum.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin cumsum.cu -o cumsum.cubin
//   launch   grid ((M + 3) / 4), block 128, no dynamic shared memory
//   sizes    M and N are free
//   text     sha256 5fa636d2c904  (edit freely: `tile2c --merge` keeps your changes)

constexpr int block_M = 4;
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

// Sum over the 32 lanes of a warp, in every lane.
static __device__ float warp_sum(float x) {
    for (int offset = 16; offset >= 1; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, offset);
        x = x + other;
    }
    return x;
}

// Sum of this and the earlier ones of 32 neighbouring lanes; `lane` counts in these.
static __device__ float lanes_scan_sum_32(float x, int lane) {
    for (int offset = 1; offset < 32; offset *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, x, offset, 32);
        if (lane >= offset) x = other + x;
    }
    return x;
}

// What the lane below has, of 32 neighbouring lanes; `first` where there is none.
static __device__ float lane_below_32(float x, float first, int lane) {
    const float below = __shfl_up_sync(0xffffffffu, x, 1, 32);
    return lane > 0 ? below : first;
}

// What the last of 32 neighbouring lanes has.
static __device__ float last_of_32(float x) { return __shfl_sync(0xffffffffu, x, 31, 32); }

// What a block does; `aligned`: rows start where wide accesses may.
template <bool aligned>
static __device__ void cumsum_block(const float* __restrict__ X,  // [M, N]
                                    float* __restrict__ Y,  // [M, N]
                                    int M, int N) {
    __align__(16) float tile[4][4];  // [block_M, block_N] over the block
    float carry = {};  // [block_M] over the block; T.clear(carry)
    float total;  // [block_M] over the block

    const int bx = blockIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    // for ko in T.serial(T.ceildiv(N, block_N))
    for (int ko = 0; ko < (N + block_N - 1) / block_N; ++ko) {
        // T.copy(X[bx * block_M, ko * block_N], tile)
        UNROLL
        for (int c = 0; c < 4; ++c) {
            const int j = c * 128 + lane * 4;
            const int row = bx * block_M + warp, col = ko * block_N + j;
            const int valid = row < M ? N - col : 0;
            load_whole_vector<aligned>(tile[c], &X[size_t(row) * N + col], valid);
        }

        // T.reduce_sum(tile, total, dim=1)
        total = 0.f;
        UNROLL
        for (int c = 0; c < 4; ++c)
            for (int v = 0; v < 4; ++v) total += tile[c][v];
        total = warp_sum(total);

        // T.cumsum(tile, dim=1)
        {
            float before = 0.f;
            UNROLL
            for (int c = 0; c < 4; ++c) {
                for (int v = 1; v < 4; ++v) tile[c][v] = tile[c][v - 1] + tile[c][v];
                const float through = before + lanes_scan_sum_32(tile[c][3], lane);
                const float own = lane_below_32(through, before, lane);
                for (int v = 0; v < 4; ++v) tile[c][v] = own + tile[c][v];
                before = last_of_32(through);  // for the rest of the line
            }
        }

        // for i, j in T.Parallel(block_M, block_N)
        UNROLL
        for (int c = 0; c < 4; ++c)
            for (int v = 0; v < 4; ++v) tile[c][v] += carry;

        // T.copy(tile, Y[bx * block_M, ko * block_N])
        UNROLL
        for (int c = 0; c < 4; ++c) {
            const int j = c * 128 + lane * 4;
            const int row = bx * block_M + warp, col = ko * block_N + j;
            if (row >= M) continue;  // the last tile may reach past the edge
            store_whole_vector<aligned>(&Y[size_t(row) * N + col], tile[c], N - col);
        }

        // Where the next tile goes on.
        // for i in T.Parallel(block_M)
        carry += total;
    }
}

// Wide accesses stay aligned: X and Y at multiples of 16 bytes, N % 4 == 0.
extern "C" __global__ void __launch_bounds__(128) cumsum(const float* __restrict__ X,  // [M, N]
                                                         float* __restrict__ Y,  // [M, N]
                                                         int M, int N) {
    cumsum_block<true>(X, Y, M, N);
}

// Any sizes and addresses: element by element where rows may start anywhere.
extern "C" __global__ void __launch_bounds__(128) cumsum_any(const float* __restrict__ X,  // [M, N]
                                                             float* __restrict__ Y,  // [M, N]
                                                             int M, int N) {
    cumsum_block<false>(X, Y, M, N);
}
