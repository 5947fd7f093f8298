// varlen_attention: O = softmax(Q @ K^T / sqrt(dim)) @ V for each head of each sequence.
//   from     varlen_attention.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c varlen_attention.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin varlen_attention.cu -o varlen_attention.cubin
//   launch   grid ((longest + 127) / 128, heads, edges - 1), block 128, 65536 bytes of dynamic
//            shared memory
//   sizes    total, heads and edges are free
//   needs    Q, K and V at multiples of 16 bytes
//   text     sha256 4bf1bde2a07c  (edit freely: `tile2c --merge` keeps your changes)
#include <cuda_fp16.h>

constexpr int dim = 128;
constexpr int block_M = 128;
constexpr int block_N = 32;
constexpr int num_stages = 2;
constexpr float scale = 0.12751743074602467f;

// Registers have no address: long loops through them have to be unrolled, short ones are anyway.
#define UNROLL _Pragma("unroll")

constexpr float infinity = __builtin_bit_cast(float, 0x7f800000);

// Q_shared, K_shared and V_shared: chunk c of 8 elements of a row lies at c ^ row % 8, so that rows
// that are read together fall into different groups of banks.
static __device__ int tile_col(unsigned row, unsigned col) { return col ^ row % 8 * 8; }

struct Shared {
    alignas(128) half Q_shared[block_M][dim];  // 32 KiB
    alignas(128) half K_shared[num_stages][block_N][dim];  // 16 KiB
    alignas(128) half V_shared[num_stages][block_N][dim];  // 16 KiB
};

// A block's shared memory, as much as its launch says.
extern __shared__ __align__(1024) unsigned char shared_bytes[];

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
// edge.
template <typename T, int n>
static __device__ void load_whole_vector(T (&dst)[n], const T* src, int valid) {
    Pack<T, n> read = {};
    if (valid > 0) read = *reinterpret_cast<const Pack<T, n>*>(src);
    *reinterpret_cast<Pack<T, n>*>(dst) = read;
}

// Starts the copy of n neighbours to shared memory, with zeros where `valid` is not positive:
// aligned rows end between copies.
template <int n, typename T>
static __device__ void copy_async(T* shared, const T* global, int valid) {
    const unsigned dst = __cvta_generic_to_shared(shared);
    const int bytes = valid > 0 ? n * int(sizeof(T)) : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2, %3;" ::"r"(dst), "l"(global),
                 "n"(n * sizeof(T)), "r"(bytes)
                 : "memory");
}

// Closes the group of copies that this thread has started.
static __device__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `pending` of this thread's groups of copies are open.
template <int pending>
static __device__ void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Loads four 8x8 matrices of 16-byte rows: lane l passes the address of row l % 8 of matrix l / 8.
static __device__ void load_matrices(unsigned (&r)[4], const half* row) {
    const unsigned src = __cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(src)
                 : "memory");
}

// Loads four 8x8 matrices of 16-byte rows, transposed: lane l passes the address of row l % 8 of
// matrix l / 8.
static __device__ void load_matrices_transposed(unsigned (&r)[4], const half* row) {
    const unsigned src = __cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(src)
                 : "memory");
}

// Neighbours as the register that matrix instructions take.
static __device__ unsigned register_of(const half* first) {
    return *reinterpret_cast<const unsigned*>(first);
}

// c[16x8] += a[16x16] * b[16x8]. Lane l holds rows l / 4 + {0, 8} of c, columns l % 4 * 2 + {0, 1}.
static __device__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// a / b rounded towards plus infinity.
template <typename T>
static __device__ T ceil_div(T a, T b) {
    const T quotient = a / b;
    return quotient * b != a && (a < 0) == (b < 0) ? quotient + 1 : quotient;
}

// x / y without the operator's branch to a slow path, rounded as there (to a neighbour where x is
// below 2^-100 or the result below 2^-126; to infinity where x * (1 / y) overflows, if only by
// rounding). Where many x have the same y, the compiler computes 1 / y once.
static __device__ float divided(float x, float y) {
    const float scale = fabsf(y) < 0x1p-100f ? 0x1p64f : fabsf(y) > 0x1p100f ? 0x1p-64f : 1.f;
    const float inverse = 1.f / (y * scale);
    const float near = x * scale * inverse;
    const float rest = fmaf(-near, y * scale, x * scale);
    const float found = fmaf(rest, inverse, near);
    return fabsf(found) > 0.f ? found : near;  // zero keeps its sign, infinity is not its rest
}

// Largest over 4 neighbouring lanes, in every one of them.
static __device__ float lanes_max_4(float x) {
    for (int offset = 2; offset >= 1; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, offset);
        x = fmaxf(x, other);
    }
    return x;
}

// Sum over 4 neighbouring lanes, in every one of them.
static __device__ float lanes_sum_4(float x) {
    for (int offset = 2; offset >= 1; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, offset);
        x = x + other;
    }
    return x;
}

extern "C" __global__ void __launch_bounds__(128) varlen_attention(
    const half* __restrict__ Q,  // [total, heads, dim]
    const half* __restrict__ K,  // [total, heads, dim]
    const half* __restrict__ V,  // [total, heads, dim]
    const int* __restrict__ starts,  // [edges]
    int longest, half* __restrict__ O,  // [total, heads, dim]
    int total, int heads) {
    Shared& shared = *reinterpret_cast<Shared*>(shared_bytes);  // 64 KiB of dynamic shared memory
    auto& Q_shared = shared.Q_shared;
    auto& K_shared = shared.K_shared;
    auto& V_shared = shared.V_shared;
    float S[2][4][4];  // [block_M, block_N] over the block
    __align__(8) half P[2][4][4];  // [block_M, block_N] over the block
    float acc[2][16][4] = {};  // [block_M, dim] over the block; T.clear(acc)
    float row_max[2][2];  // [block_M] over the block
    float max_before[2][2];  // [block_M] over the block
    float rescale[2][2];  // [block_M] over the block
    float row_sum[2][2];  // [block_M] over the block
    float row_sum_part[2][2] = {};  // [block_M] each thread's part; T.clear(row_sum)

    const int bx = blockIdx.x, by = blockIdx.y, bz = blockIdx.z;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_m = warp * 32;  // 4 x 1 warps of 32 x 32
    const int start = starts[bz];
    const int length = starts[bz + 1] - start;
    const int first = bx * block_M;

    // T.copy(Q[start + first : start + first + block_M, by, :], Q_shared)
    UNROLL
    for (int turn = 0; turn < 16; ++turn) {
        const int i = turn * 8 + threadIdx.x / 16, j = threadIdx.x % 16 * 8;
        const int plane = start + first + i;
        __align__(16) half Q_part[8];
        const int valid = plane >= 0 && plane < total ? 8 : 0;
        load_whole_vector(Q_part, &Q[(size_t(plane) * heads + by) * dim + j], valid);
        store_vector(&Q_shared[i][tile_col(i, j)], Q_part);
    }

    // T.fill(row_max, -T.infinity(accum_dtype))
    for (int m = 0; m < 2; ++m)
        for (int h = 0; h < 2; ++h) row_max[m][h] = -infinity;
    // Shorter sequences leave their last blocks without work.
    const int keys = min(length, first + block_M);
    const int tiles = first < length ? ceil_div(keys, block_N) : 0;

    const half* K_src =
        &K[(size_t(start + threadIdx.x / 16) * heads + by) * dim + threadIdx.x % 16 * 8];
    const half* V_src =
        &V[(size_t(start + threadIdx.x / 16) * heads + by) * dim + threadIdx.x % 16 * 8];
    auto load_tiles = [&](int ko) {
        const int stage = ko % num_stages;
        // Rows past the end belong to the next sequence: the mask takes them out again.
        // T.copy(K[start + ko * block_N : start + (ko + 1) * block_N, by, :], K_shared)
        UNROLL
        for (int turn = 0; turn < 4; ++turn) {
            const int i = turn * 8 + threadIdx.x / 16, j = threadIdx.x % 16 * 8;
            const int plane = start + ko * block_N + i;
            const int valid = plane >= 0 && plane < total ? 8 : 0;
            copy_async<8>(&K_shared[stage][i][tile_col(i, j)],
                          K_src + size_t(turn * 8) * heads * dim, valid);
        }
        // T.copy(V[start + ko * block_N : start + (ko + 1) * block_N, by, :], V_shared)
        UNROLL
        for (int turn = 0; turn < 4; ++turn) {
            const int i = turn * 8 + threadIdx.x / 16, j = threadIdx.x % 16 * 8;
            const int plane = start + ko * block_N + i;
            const int valid = plane >= 0 && plane < total ? 8 : 0;
            copy_async<8>(&V_shared[stage][i][tile_col(i, j)],
                          V_src + size_t(turn * 8) * heads * dim, valid);
        }
        K_src += size_t(block_N) * heads * dim;
        V_src += size_t(block_N) * heads * dim;
    };

    for (int ko = 0; ko < num_stages - 1; ++ko) {
        if (ko < tiles) load_tiles(ko);
        copies_commit();
    }

    // for ko in T.Pipelined(tiles, num_stages=num_stages)
    for (int ko = 0; ko < tiles; ++ko) {
        const int stage = ko % num_stages;
        copies_wait<num_stages - 2>();  // this thread's part of tile ko has arrived
        // tile ko and Q_shared are complete; nobody still reads the stage refilled next
        __syncthreads();
        if (ko + num_stages - 1 < tiles) load_tiles(ko + num_stages - 1);
        copies_commit();  // empty groups at the end keep the count for copies_wait right

        // T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True,
        // policy=T.GemmWarpPolicy.FullRow)
        UNROLL
        for (int m = 0; m < 2; ++m)
            for (int n = 0; n < 4; ++n)
                for (int v = 0; v < 4; ++v) S[m][n][v] = 0.f;
        for (int k = 0; k < dim; k += 16) {
            unsigned a[2][4], b[2][4];
            for (int m = 0; m < 2; ++m) {
                const int row = warp_m + m * 16 + lane % 16, col = k + lane / 16 * 8;
                load_matrices(a[m], &Q_shared[row][tile_col(row, col)]);
            }
            for (int n = 0; n < 2; ++n) {
                const int row = n * 16 + lane / 16 * 8 + lane % 8, col = k + lane / 8 % 2 * 8;
                load_matrices(b[n], &K_shared[stage][row][tile_col(row, col)]);
            }
            for (int m = 0; m < 2; ++m)
                for (int n = 0; n < 4; ++n)
                    mma(S[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
        }

        // for i, j in T.Parallel(block_M, block_N)
        UNROLL
        for (int m = 0; m < 2; ++m)
            for (int n = 0; n < 4; ++n)
                for (int h = 0; h < 2; ++h)
                    for (int v = 0; v < 2; ++v) {
                        const int i = warp_m + m * 16 + h * 8 + lane / 4;
                        const int j = n * 8 + lane % 4 * 2 + v;
                        const int end = min(first + i + 1, length);
                        S[m][n][h * 2 + v] =
                            ko * block_N + j < end ? S[m][n][h * 2 + v] : -infinity;
                    }

        // T.copy(row_max, max_before)
        for (int m = 0; m < 2; ++m)
            for (int h = 0; h < 2; ++h) max_before[m][h] = row_max[m][h];

        // T.reduce_max(S, row_max, dim=1, clear=False)
        for (int m = 0; m < 2; ++m)
            for (int h = 0; h < 2; ++h) {
                float row_max_part = -infinity;
                UNROLL
                for (int n = 0; n < 4; ++n)
                    for (int v = 0; v < 2; ++v)
                        row_max_part = fmaxf(row_max_part, S[m][n][h * 2 + v]);
                row_max[m][h] = fmaxf(row_max[m][h], lanes_max_4(row_max_part));
            }

        // for i in T.Parallel(block_M)
        for (int m = 0; m < 2; ++m)
            for (int h = 0; h < 2; ++h) {
                rescale[m][h] = exp2f((max_before[m][h] - row_max[m][h]) * scale);
                row_sum_part[m][h] *= rescale[m][h];
            }

        // for i, j in T.Parallel(block_M, dim)
        UNROLL
        for (int m = 0; m < 2; ++m)
            for (int n = 0; n < 16; ++n)
                for (int h = 0; h < 2; ++h)
                    for (int v = 0; v < 2; ++v) acc[m][n][h * 2 + v] *= rescale[m][h];

        // for i, j in T.Parallel(block_M, block_N)
        UNROLL
        for (int m = 0; m < 2; ++m)
            for (int n = 0; n < 4; ++n)
                for (int h = 0; h < 2; ++h)
                    for (int v = 0; v < 2; ++v)
                        S[m][n][h * 2 + v] =
                            exp2f(S[m][n][h * 2 + v] * scale - row_max[m][h] * scale);

        // T.reduce_sum(S, row_sum, dim=1, clear=False)
        for (int m = 0; m < 2; ++m)
            for (int h = 0; h < 2; ++h) {
                UNROLL
                for (int n = 0; n < 4; ++n)
                    for (int v = 0; v < 2; ++v) row_sum_part[m][h] += S[m][n][h * 2 + v];
            }

        // T.copy(S, P)
        UNROLL
        for (int m = 0; m < 2; ++m)
            for (int n = 0; n < 4; ++n)
                for (int h = 0; h < 2; ++h)
                    for (int v = 0; v < 2; ++v)
                        P[m][n][h * 2 + v] = __float2half_rn(S[m][n][h * 2 + v]);

        // T.gemm(P, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)
        UNROLL
        for (int k = 0; k < block_N; k += 16) {
            unsigned a[2][4], b[8][4];
            for (int m = 0; m < 2; ++m)
                for (int r = 0; r < 4; ++r) a[m][r] = register_of(&P[m][k / 8 + r / 2][r % 2 * 2]);
            for (int n = 0; n < 8; ++n) {
                const int row = k + lane % 16, col = n * 16 + lane / 16 * 8;
                load_matrices_transposed(b[n], &V_shared[stage][row][tile_col(row, col)]);
            }
            for (int m = 0; m < 2; ++m)
                for (int n = 0; n < 16; ++n)
                    mma(acc[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
        }
    }

    // row_sum: what the threads have gathered comes together, once
    for (int m = 0; m < 2; ++m)
        for (int h = 0; h < 2; ++h) row_sum[m][h] = lanes_sum_4(row_sum_part[m][h]);

    // The rows behind this sequence are another block's to write.
    // for i, j in T.Parallel(block_M, dim)
    UNROLL
    for (int m = 0; m < 2; ++m)
        for (int h = 0; h < 2; ++h)
            for (int n = 0; n < 16; ++n) {
                const int i = warp_m + m * 16 + h * 8 + lane / 4, j = n * 8 + lane % 4 * 2;
                const int plane = start + first + i;
                for (int v = 0; v < 2; ++v) {
                    if (first + i < length) {
                        if (plane >= 0 && plane < total) {  // the last tile may reach past the edge
                            O[(size_t(plane) * heads + by) * dim + j + v] =
                                __float2half_rn(divided(acc[m][n][h * 2 + v], row_sum[m][h]));
                        }
                    }
                }
            }
}
