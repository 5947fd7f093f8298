// cumsum: Y[i, j] = X[i, 0] + ... + X[i, j]
//   from     cumsum.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c cumsum.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin cumsum.cu -o cumsum.cubin
//   launch   grid ((M + 3) / 4), block 128, no dynamic shared memory
//   sizes    M and N are free
//   text     sha256 62453c6f4ef3  (edit freely: `tile2c --merge` keeps your changes)

constexpr int block_M = 4;
constexpr int block_N = 256;

// Registers have no address: a loop that counts through them is unrolled.
#define UNROLL _Pragma("unroll")

// tile: chunk c of 4 elements of a row lies at c ^ row % 8, so that rows that are read together
// fall into different groups of banks.
static __device__ int tile_col(int row, int col) { return (col / 4 ^ row % 8) * 4 + col % 4; }

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

// Sum of this and the earlier ones of 32 neighbouring lanes; `lane` counts in these.
static __device__ float lanes_scan_sum_32(float x, int lane) {
    for (int offset = 1; offset < 32; offset *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, x, offset, 32);
        if (lane >= offset) x = other + x;
    }
    return x;
}

// What the last of 32 neighbouring lanes has.
static __device__ float last_of_32(float x) { return __shfl_sync(0xffffffffu, x, 31, 32); }

template <bool aligned>
static __device__ void cumsum_block(const float* __restrict__ X,  // [M, N]
                                    float* __restrict__ Y,  // [M, N]
                                    int M, int N) {
    __shared__ __align__(128) float tile[block_M][block_N];  // 4 KiB
    __shared__ __align__(128) float carry[block_M];

    const int bx = blockIdx.x;

    // T.clear(carry)
    {
        const int i = threadIdx.x;
        if (threadIdx.x < 4) {  // the rest of the threads have nothing here
            carry[i] = 0.f;
        }
    }

    // for ko in T.serial(T.ceildiv(N, block_N))
    for (int ko = 0; ko < (N + block_N - 1) / block_N; ++ko) {
        __syncthreads();  // carry and tile are complete; nobody still reads the old tile and carry

        // T.copy(X[bx * block_M, ko * block_N], tile)
        UNROLL
        for (int turn = 0; turn < 2; ++turn) {
            const int i = turn * 2 + threadIdx.x / 64, j = threadIdx.x % 64 * 4;
            const int row = bx * block_M + i, col = ko * block_N + j;
            __align__(16) float X_part[4];
            const int valid = row < M ? N - col : 0;
            load_whole_vector<aligned>(X_part, &X[size_t(row) * N + col], valid);
            store_vector(&tile[i][tile_col(i, j)], X_part);
        }
        __syncthreads();  // carry and tile are complete; nobody still reads the old tile and carry

        // T.cumsum(tile, dim=1)
        {
            const int line = threadIdx.x / 32;
            float before = 0.f;
            for (int first = 0; first < 256; first += 32) {
                const int at = first + threadIdx.x % 32;
                const float value =
                    before + lanes_scan_sum_32(tile[line][tile_col(line, at)], threadIdx.x % 32);
                tile[line][tile_col(line, at)] = value;
                before = last_of_32(value);  // for the rest of the line
            }
        }
        __syncthreads();  // carry and tile are complete; nobody still reads the old tile and carry

        // for i, j in T.Parallel(block_M, block_N)
        UNROLL
        for (int turn = 0; turn < 2; ++turn) {
            const int i = turn * 2 + threadIdx.x / 64, j = threadIdx.x % 64 * 4;
            __align__(16) float tile_part[4];
            load_vector(tile_part, &tile[i][tile_col(i, j)]);
            for (int v = 0; v < 4; ++v) tile_part[v] += carry[i];
            store_vector(&tile[i][tile_col(i, j)], tile_part);
        }
        __syncthreads();  // tile is complete; nobody still reads the old tile and carry

        // T.copy(tile, Y[bx * block_M, ko * block_N])
        UNROLL
        for (int turn = 0; turn < 2; ++turn) {
            const int i = turn * 2 + threadIdx.x / 64, j = threadIdx.x % 64 * 4;
            const int row = bx * block_M + i, col = ko * block_N + j;
            if (row >= M) continue;  // the last tile may reach past the edge
            __align__(16) float tile_part[4];
            load_vector(tile_part, &tile[i][tile_col(i, j)]);
            store_whole_vector<aligned>(&Y[size_t(row) * N + col], tile_part, N - col);
        }

        // The last sum of the tile is where the next one goes on.
        // for i in T.Parallel(block_M)
        {
            const int i = threadIdx.x;
            if (threadIdx.x < 4) {  // the rest of the threads have nothing here
                carry[i] = tile[i][tile_col(i, block_N - 1)];
            }
        }
    }
}

// Wide accesses stay aligned: N % 4 == 0 and X % 16 == 0 and Y % 16 == 0.
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
