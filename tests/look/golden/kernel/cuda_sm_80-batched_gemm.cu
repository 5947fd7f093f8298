// batched_gemm: C[b] = A[b] @ B[b]
//   from     batched_gemm.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c batched_gemm.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin batched_gemm.cu -o batched_gemm.cubin
//   launch   grid ((N + 127) / 128, (M + 127) / 128, batch), block 128, no dynamic shared memory
//   sizes    batch, M, N and K are free
//   text     sha256 77a428a48a3c  (edit freely: `tile2c --merge` keeps your changes)
#include <cuda_fp16.h>

constexpr int block_M = 128;
constexpr int block_N = 128;
constexpr int block_K = 32;
constexpr int num_stages = 3;

// Registers have no address: long loops through them have to be unrolled, short ones are anyway.
#define UNROLL _Pragma("unroll")

// Loops that stay rolled: unrolled, they would only be more code to fetch.
#define ROLLED _Pragma("unroll 1")

// Where rows start anywhere, loads take the time: the code of a product need stand only once.
#define ROLLED_UNALIGNED _Pragma("unroll (aligned ? 4 : 1)")

// A_shared: chunk c of 8 elements of a row lies at c ^ row / 2 % 4, so that rows that are read
// together fall into different groups of banks.
static __device__ int A_col(unsigned row, unsigned col) { return col ^ row / 2 % 4 * 8; }

// B_shared and C_tile: chunk c of 8 elements of a row lies at c ^ row % 8, so that rows that are
// read together fall into different groups of banks.
static __device__ int tile_col(unsigned row, unsigned col) { return col ^ row % 8 * 8; }

struct Shared {
    union {  // in the same bytes, one after the other: A_shared and B_shared, then C_tile
        struct {
            alignas(128) half A_shared[num_stages][block_M][block_K];  // 24 KiB
            alignas(128) half B_shared[num_stages][block_K][block_N];  // 24 KiB
        };
        alignas(128) half C_tile[block_M][block_N];  // 32 KiB
    };
};

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

// Rounds two neighbours together and writes them in one access. Volatile spares compilers from
// comparing each of many such stores with all the others.
static __device__ void store_pair(half* dst, float x, float y) {
    const half2 pair = __floats2half2_rn(x, y);
    *reinterpret_cast<volatile unsigned*>(dst) = reinterpret_cast<const unsigned&>(pair);
}

// Copies n neighbours to shared memory, with zeros at and past `valid`: two are loaded at a time,
// all are stored in one access. No branch: loads of many elements are under way together.
template <int n>
static __device__ void copy_below(half* shared, const half* row, int valid) {
    Pack<unsigned, n / 2> found;
    for (int v = 0; v < n; v += 2)
        asm volatile(
            "{\n"
            ".reg .pred inside;\n"
            ".reg .b16 low, high;\n"
            "mov.b16 low, 0;\n"
            "mov.b16 high, 0;\n"
            "setp.lt.s32 inside, %2, %4;\n"
            "@inside ld.global.nc.b16 low, [%1];\n"
            "setp.lt.s32 inside, %3, %4;\n"
            "@inside ld.global.nc.b16 high, [%1 + 2];\n"
            "mov.b32 %0, {low, high};\n"
            "}"
            : "=r"(found.at[v / 2])
            : "l"(row + v), "r"(v), "r"(v + 1), "r"(valid));
    *reinterpret_cast<Pack<unsigned, n / 2>*>(shared) = found;
}

// Starts the copy of n neighbours to shared memory, with zeros where `valid` is not positive:
// aligned rows end between copies.
template <int n, bool aligned, typename T>
static __device__ void copy_async(T* shared, const T* global, int valid) {
    if (!aligned) return copy_below<n>(shared, global, valid);  // element by element
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

// c[16x8] += a[16x16] * b[16x8]. Lane l holds rows l / 4 + {0, 8} of c, columns l % 4 * 2 + {0, 1}.
static __device__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// What a block does; `aligned`: rows start where wide accesses may.
template <bool aligned>
static __device__ void batched_gemm_block(const half* __restrict__ A,  // [batch, M, K]
                                          const half* __restrict__ B,  // [batch, K, N]
                                          half* __restrict__ C,  // [batch, M, N]
                                          int M, int N, int K) {
    __shared__ Shared shared;  // 48 KiB
    auto& A_shared = shared.A_shared;
    auto& B_shared = shared.B_shared;
    auto& C_tile = shared.C_tile;
    float C_local[4][8][4] = {};  // [block_M, block_N] over the block; T.clear(C_local)

    const int bx = blockIdx.x, by = blockIdx.y, bz = blockIdx.z;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_m = warp / 2 * 64, warp_n = warp % 2 * 64;  // 2 x 2 warps of 64 x 64

    const half* A_src =
        &A[(size_t(bz) * M + by * block_M + threadIdx.x / 4) * K + threadIdx.x % 4 * 8];
    const half* B_src =
        &B[(size_t(bz) * K + threadIdx.x / 16) * N + bx * block_N + threadIdx.x % 16 * 8];
    int fill = 0, stage = 0;  // stages: loaded next, in use
    auto load_tiles = [&](int ko) {
        // T.copy(A[bz, by * block_M, ko * block_K], A_shared)
        UNROLL
        for (int turn = 0; turn < 4; ++turn) {
            const int i = turn * 32 + threadIdx.x / 4, j = threadIdx.x % 4 * 8;
            const int row = by * block_M + i, col = ko * block_K + j;
            const int valid = row < M ? K - col : 0;
            copy_async<8, aligned>(&A_shared[fill][i][A_col(i, j)], A_src + size_t(turn * 32) * K,
                                   valid);
        }
        // T.copy(B[bz, ko * block_K, bx * block_N], B_shared)
        UNROLL
        for (int turn = 0; turn < 4; ++turn) {
            const int i = turn * 8 + threadIdx.x / 16, j = threadIdx.x % 16 * 8;
            const int row = ko * block_K + i, col = bx * block_N + j;
            const int valid = row < K ? N - col : 0;
            copy_async<8, aligned>(&B_shared[fill][i][tile_col(i, j)], B_src + size_t(turn * 8) * N,
                                   valid);
        }
        A_src += block_K;
        B_src += size_t(block_K) * N;
        fill = fill + 1 < num_stages ? fill + 1 : 0;
    };

    const int ko_end = (K + block_K - 1) / block_K;
    if (aligned) {  // copies that run ahead of their use
        ROLLED
        for (int ko = 0; ko < num_stages - 1; ++ko) {
            if (ko < ko_end) load_tiles(ko);
            copies_commit();
        }
    }

    // for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages)
    // where nothing runs ahead, rounds before the first one only load
    for (int ko = aligned ? 0 : 1 - num_stages; ko < ko_end; ++ko) {
        copies_wait<num_stages - 2>();  // this thread's part of tile ko has arrived
        // tile ko is complete for all threads; nobody still reads the stage refilled next
        __syncthreads();
        if (ko + num_stages - 1 < ko_end) load_tiles(ko + num_stages - 1);
        if (!aligned && ko < 0) continue;  // so far there is nothing to multiply
        copies_commit();  // empty groups at the end keep the count for copies_wait right

        // T.gemm(A_shared, B_shared, C_local)
        ROLLED_UNALIGNED
        for (int k = 0; k < block_K; k += 16) {
            unsigned a[4][4], b[4][4];
            for (int m = 0; m < 4; ++m) {
                const int row = warp_m + m * 16 + lane % 16, col = k + lane / 16 * 8;
                load_matrices(a[m], &A_shared[stage][row][A_col(row, col)]);
            }
            for (int n = 0; n < 4; ++n) {
                const int row = k + lane % 16, col = warp_n + n * 16 + lane / 16 * 8;
                load_matrices_transposed(b[n], &B_shared[stage][row][tile_col(row, col)]);
            }
            for (int m = 0; m < 4; ++m)
                for (int n = 0; n < 8; ++n)
                    mma(C_local[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
        }
        stage = stage + 1 < num_stages ? stage + 1 : 0;
    }
    __syncthreads();  // nobody still touches A_shared and B_shared, whose bytes C_tile takes

    // T.copy(C_local, C[bz, by * block_M, bx * block_N])
    UNROLL
    for (int m = 0; m < 4; ++m)
        for (int n = 0; n < 8; ++n)
            for (int h = 0; h < 2; ++h) {
                const int i = warp_m + m * 16 + h * 8 + lane / 4, j = warp_n + n * 8 + lane % 4 * 2;
                store_pair(&C_tile[i][tile_col(i, j)], C_local[m][n][h * 2],
                           C_local[m][n][h * 2 + 1]);
            }
    __syncthreads();  // C_tile is complete

    // whole rows of C leave together, 16 bytes a thread
    ROLLED
    for (int turn = 0; turn < 16; ++turn) {
        const int i = turn * 8 + threadIdx.x / 16, j = threadIdx.x % 16 * 8;
        const int row = by * block_M + i, col = bx * block_N + j;
        if (row >= M) continue;  // the last tile may reach past the edge
        __align__(16) half C_tile_part[8];
        load_vector(C_tile_part, &C_tile[i][tile_col(i, j)]);
        store_whole_vector<aligned>(&C[(size_t(bz) * M + row) * N + col], C_tile_part, N - col);
    }
}

// Wide accesses stay aligned: A, B and C at multiples of 16 bytes, M * K % 8 == 0, K % 8 == 0,
// K * N % 8 == 0, N % 8 == 0, M * N % 8 == 0.
extern "C" __global__ void __launch_bounds__(128) batched_gemm(
    const half* __restrict__ A,  // [batch, M, K]
    const half* __restrict__ B,  // [batch, K, N]
    half* __restrict__ C,  // [batch, M, N]
    int M, int N, int K) {
    batched_gemm_block<true>(A, B, C, M, N, K);
}

// Any sizes and addresses: element by element where rows may start anywhere.
extern "C" __global__ void __launch_bounds__(128) batched_gemm_any(
    const half* __restrict__ A,  // [batch, M, K]
    const half* __restrict__ B,  // [batch, K, N]
    half* __restrict__ C,  // [batch, M, N]
    int M, int N, int K) {
    batched_gemm_block<false>(A, B, C, M, N, K);
}
