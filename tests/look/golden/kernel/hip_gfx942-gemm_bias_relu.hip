// gemm_bias_relu: C = relu(A @ B + bias)
//   from     gemm_bias_relu.py by tile2c 0.1.0
//   target   hip:gfx942 (never run on silicon)
//   again    tile2c gemm_bias_relu.py -o . --target hip:gfx942
//   compile  hipcc --genco --offload-arch=gfx942 -O3 -std=c++17 gemm_bias_relu.hip
//            -o gemm_bias_relu.hsaco
//   launch   grid ((N + 127) / 128, (M + 127) / 128), block 128, no dynamic shared memory
//   sizes    M, N and K are free
//   text     sha256 d7def780ef0e  (edit freely: `tile2c --merge` keeps your changes)
#include <hip/hip_runtime.h>

constexpr int block_M = 128;
constexpr int block_N = 128;
constexpr int block_K = 32;

// Registers have no address: long loops through them have to be unrolled, short ones are anyway.
#define UNROLL _Pragma("unroll")

typedef float floatx4 __attribute__((ext_vector_type(4)));

typedef _Float16 half8 __attribute__((ext_vector_type(8)));

// A_shared: chunk c of 8 elements of a row lies at c ^ row / 2 % 4, so that rows that are read
// together fall into different groups of banks.
static __device__ int A_col(unsigned row, unsigned col) { return col ^ row / 2 % 4 * 8; }

// B_shared: 8 rows of a column lie together, as a matrix operand takes them. Columns change places
// within groups of 8, so that lanes that write neighbours meet different groups of banks.
static __device__ int B_col(int col) { return col ^ col / 8 % 8; }

// `n` neighbours that move in one access: a vector, which the compiler keeps in registers.
template <typename T, int n>
using Pack = T __attribute__((ext_vector_type(n)));

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

// 8 neighbours along k, in one access.
static __device__ half8 load_operand(const _Float16* src) {
    return *reinterpret_cast<const half8*>(src);
}

// c[16x16] + a[16x32] * b[32x16] in two instructions. Lane l holds row l % 16 of a and column
// l % 16 of b at eight k from l / 16 * 8, of which each instruction takes four: the order of k is
// free while a and b agree. With b as the first operand the lane gets c's row l % 16 at four
// columns from l / 16 * 4.
static __device__ floatx4 mfma_16x16x16_twice(half8 a, half8 b, floatx4 c) {
    typedef _Float16 Four __attribute__((ext_vector_type(4)));
    struct Halves {
        Four low, high;
    };
    const Halves first = __builtin_bit_cast(Halves, b), second = __builtin_bit_cast(Halves, a);
    c = __builtin_amdgcn_mfma_f32_16x16x16f16(first.low, second.low, c, 0, 0, 0);
    return __builtin_amdgcn_mfma_f32_16x16x16f16(first.high, second.high, c, 0, 0, 0);
}

// What a block does; `aligned`: rows start where wide accesses may.
template <bool aligned>
static __device__ void gemm_bias_relu_block(const _Float16* __restrict__ A,  // [M, K]
                                            const _Float16* __restrict__ B,  // [K, N]
                                            const _Float16* __restrict__ bias,  // [N]
                                            _Float16* __restrict__ C,  // [M, N]
                                            int M, int N, int K) {
    __shared__ __align__(128) _Float16 A_shared[2][block_M][block_K];  // 16 KiB
    __shared__ __align__(128) _Float16 B_shared[2][block_K / 8][block_N][8];  // 16 KiB
    floatx4 C_local[4][8] = {};  // [block_M, block_N] over the block; T.clear(C_local)
    __align__(16) _Float16 A_next[4][8];  // [block_M, block_K] over the block
    __align__(8) _Float16 B_next[8][4];  // [block_K, block_N] over the block

    const int bx = blockIdx.x, by = blockIdx.y;
    const int lane = threadIdx.x % 64, wave = threadIdx.x / 64;
    const int wave_m = wave * 64;  // 2 x 1 waves of 64 x 128

    auto load_tiles = [&](int ko) {
        // T.copy(A[by * block_M, ko * block_K], A_shared)
        UNROLL
        for (int r = 0; r < 4; ++r) {
            const int i = r * 32 + threadIdx.x / 4, j = lane % 4 * 8;
            const int row = by * block_M + i, col = ko * block_K + j;
            const int valid = row < M ? K - col : 0;
            load_whole_vector<aligned>(A_next[r], &A[size_t(row) * K + col], valid);
        }
        // T.copy(B[ko * block_K, bx * block_N], B_shared)
        UNROLL
        for (int r = 0; r < 8; ++r) {
            const int i = threadIdx.x / 32 * 8 + r, j = lane % 32 * 4;
            const int row = ko * block_K + i, col = bx * block_N + j;
            const int valid = row < K ? N - col : 0;
            load_whole_vector<aligned>(B_next[r], &B[size_t(row) * N + col], valid);
        }
    };

    auto store_tiles = [&](int ko) {
        const int stage = ko % 2;
        UNROLL
        for (int r = 0; r < 4; ++r) {
            const int i = r * 32 + threadIdx.x / 4, j = lane % 4 * 8;
            store_vector(&A_shared[stage][i][A_col(i, j)], A_next[r]);
        }
        UNROLL
        for (int v = 0; v < 4; ++v) {
            const int j = lane % 32 * 4 + v, i = threadIdx.x / 32 * 8;
            __align__(16) _Float16 B_shared_part[8];
            for (int r = 0; r < 8; ++r) B_shared_part[r] = B_next[r][v];
            store_vector(&B_shared[stage][i / 8][B_col(j)][0], B_shared_part);
        }
    };

    const int ko_end = (K + block_K - 1) / block_K;
    if (ko_end > 0) {
        load_tiles(0);
        store_tiles(0);
    }

    // for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages)
    for (int ko = 0; ko < ko_end; ++ko) {
        const int stage = ko % 2;
        if (ko + 1 < ko_end) load_tiles(ko + 1);
        // tile ko is complete for all threads; nobody still reads the stage refilled next
        __syncthreads();

        // T.gemm(A_shared, B_shared, C_local)
        for (int k = 0; k < block_K; k += 32) {
            half8 a[4];
            for (int m = 0; m < 4; ++m) {
                const int row = wave_m + m * 16 + lane % 16, col = k + lane / 16 * 8;
                a[m] = load_operand(&A_shared[stage][row][A_col(row, col)]);
            }
            for (int n = 0; n < 8; ++n) {
                const int row = k + lane / 16 * 8, col = n * 16 + lane % 16;
                const half8 b = load_operand(B_shared[stage][row / 8][B_col(col)]);
                for (int m = 0; m < 4; ++m)
                    C_local[m][n] = mfma_16x16x16_twice(a[m], b, C_local[m][n]);
            }
        }

        store_tiles(ko + 1);  // what the last round stores, nobody reads
    }

    // Bias and activation are applied while the sums are still in registers.
    // for i, j in T.Parallel(block_M, block_N)
    UNROLL
    for (int n = 0; n < 8; ++n) {
        const int j = n * 16 + lane / 16 * 4, at = bx * block_N + j;
        __align__(8) _Float16 bias_part[4];
        load_whole_vector<aligned>(bias_part, &bias[at], N - at);
        for (int m = 0; m < 4; ++m)
            for (int v = 0; v < 4; ++v)
                C_local[m][n][v] = fmaxf(C_local[m][n][v] + float(bias_part[v]), 0.f);
    }

    // T.copy(C_local, C[by * block_M, bx * block_N])
    UNROLL
    for (int m = 0; m < 4; ++m)
        for (int n = 0; n < 8; ++n) {
            const int i = wave_m + m * 16 + lane % 16, j = n * 16 + lane / 16 * 4;
            const int row = by * block_M + i, col = bx * block_N + j;
            if (row >= M) continue;  // the last tile may reach past the edge
            __align__(8) _Float16 C_part[4];
            for (int v = 0; v < 4; ++v) C_part[v] = _Float16(C_local[m][n][v]);
            store_whole_vector<aligned>(&C[size_t(row) * N + col], C_part, N - col);
        }
}

// Wide accesses stay aligned: A at multiples of 16 bytes, B, bias and C at multiples of 8 bytes,
// K % 8 == 0, N % 4 == 0.
extern "C" __global__ void __launch_bounds__(128) gemm_bias_relu(
    const _Float16* __restrict__ A,  // [M, K]
    const _Float16* __restrict__ B,  // [K, N]
    const _Float16* __restrict__ bias,  // [N]
    _Float16* __restrict__ C,  // [M, N]
    int M, int N, int K) {
    gemm_bias_relu_block<true>(A, B, bias, C, M, N, K);
}

// Any sizes and addresses: element by element where rows may start anywhere.
extern "C" __global__ void __launch_bounds__(128) gemm_bias_relu_any(
    const _Float16* __restrict__ A,  // [M, K]
    const _Float16* __restrict__ B,  // [K, N]
    const _Float16* __restrict__ bias,  // [N]
    _Float16* __restrict__ C,  // [M, N]
    int M, int N, int K) {
    gemm_bias_relu_block<false>(A, B, bias, C, M, N, K);
}
