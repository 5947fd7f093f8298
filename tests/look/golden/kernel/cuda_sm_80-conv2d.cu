// conv2d: out[n, :, :, f] = sum over c of data[n, :, :, c] convolved with kernel[:, :, c, f]
//   from     conv2d.py by tile2c 0.1.0
//   target   cuda:sm_80 (texts for it have run on an H200)
//   again    tile2c conv2d.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin conv2d.cu -o conv2d.cubin
//   launch   grid (1, (N * 64 * 64 + 127) / 128), block 128, no dynamic shared memory
//   sizes    N is free
//   needs    data, kernel and out at multiples of 16 bytes
//   text     sha256 5b7ec6f71485  (edit freely: `tile2c --merge` keeps your changes)
#include <cuda_fp16.h>

constexpr int H = 64;
constexpr int W = 64;
constexpr int C = 128;
constexpr int F = 128;
constexpr int K = 3;
constexpr int padding = 1;
constexpr int block_M = 128;
constexpr int block_N = 128;
constexpr int block_K = 32;
constexpr int num_stages = 3;

// Registers have no address: long loops through them have to be unrolled, short ones are anyway.
#define UNROLL _Pragma("unroll")

// Loops that stay rolled: unrolled, they would only be more code to fetch.
#define ROLLED _Pragma("unroll 1")

// data_shared: chunk c of 8 elements of a row lies at c ^ row / 2 % 4, so that rows that are read
// together fall into different groups of banks.
static __device__ int data_col(unsigned row, unsigned col) { return col ^ row / 2 % 4 * 8; }

// kernel_shared and out_tile: chunk c of 8 elements of a row lies at c ^ row % 8, so that rows that
// are read together fall into different groups of banks.
static __device__ int tile_col(unsigned row, unsigned col) { return col ^ row % 8 * 8; }

struct Shared {
    union {  // in the same bytes, one after the other: data_shared and kernel_shared, then out_tile
        struct {
            alignas(128) half data_shared[num_stages][block_M][block_K];  // 24 KiB
            alignas(128) half kernel_shared[num_stages][block_K][block_N];  // 24 KiB
        };
        alignas(128) half out_tile[block_M][block_N];  // 32 KiB
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

// Writes n neighbours in one access.
template <typename T, int n>
static __device__ void store_vector(T* dst, const T (&src)[n]) {
    *reinterpret_cast<Pack<T, n>*>(dst) = *reinterpret_cast<const Pack<T, n>*>(src);
}

// Rounds two neighbours together and writes them in one access. Volatile spares compilers from
// comparing each of many such stores with all the others.
static __device__ void store_pair(half* dst, float x, float y) {
    const half2 pair = __floats2half2_rn(x, y);
    *reinterpret_cast<volatile unsigned*>(dst) = reinterpret_cast<const unsigned&>(pair);
}

// Starts the copy of n neighbours to shared memory.
template <int n, typename T>
static __device__ void copy_async(T* shared, const T* global) {
    const unsigned dst = __cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2;" ::"r"(dst), "l"(global),
                 "n"(n * sizeof(T))
                 : "memory");
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

// c[16x8] += a[16x16] * b[16x8]. Lane l holds rows l / 4 + {0, 8} of c, columns l % 4 * 2 + {0, 1}.
static __device__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(128) conv2d(
    const half* __restrict__ data,  // [N, H, W, C]
    const half* __restrict__ kernel,  // [K, K, C, F]
    half* __restrict__ out) {  // [N, OH, OW, F]
    __shared__ Shared shared;  // 48 KiB
    auto& data_shared = shared.data_shared;
    auto& kernel_shared = shared.kernel_shared;
    auto& out_tile = shared.out_tile;
    float out_local[4][8][4] = {};  // [block_M, block_N] over the block; T.clear(out_local)

    const int bx = blockIdx.x, by = blockIdx.y;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_m = warp / 2 * 64, warp_n = warp % 2 * 64;  // 2 x 2 warps of 64 x 64

    const half* kernel_src = &kernel[threadIdx.x / 16 * F + bx * block_N + threadIdx.x % 16 * 8];
    int fill = 0, stage = 0;  // stages: loaded next, in use
    auto load_tiles = [&](int ko) {
        // T.im2col(data, data_shared, by, ko, K, stride, dilation, padding)
        UNROLL
        for (int turn = 0; turn < 4; ++turn) {
            const int i = turn * 32 + threadIdx.x / 4, j = threadIdx.x % 4 * 8;
            const int pixel = by * block_M + i;
            const int image = pixel / (64 * 64);
            const int tap = ko * block_K + j;
            const int y = pixel / 64 % 64 + tap / (K * C) - padding;
            const int x = pixel % 64 + tap / C % K - padding;
            const int channel = tap % C;
            const int valid = y >= 0 && y < H && x >= 0 && x < W ? 8 : 0;
            copy_async<8>(&data_shared[fill][i][data_col(i, j)],
                          &data[((size_t(image) * H + y) * W + x) * C + channel], valid);
        }
        // T.copy(kernel_flat[ko * block_K, bx * block_N], kernel_shared)
        UNROLL
        for (int turn = 0; turn < 4; ++turn) {
            const int i = turn * 8 + threadIdx.x / 16, j = threadIdx.x % 16 * 8;
            copy_async<8>(&kernel_shared[fill][i][tile_col(i, j)], kernel_src + turn * 8 * F);
        }
        kernel_src += block_K * F;
        fill = fill + 1 < num_stages ? fill + 1 : 0;
    };

    const int ko_end = (K * K * C + block_K - 1) / block_K;
    ROLLED
    for (int ko = 0; ko < num_stages - 1; ++ko) {
        load_tiles(ko);
        copies_commit();
    }

    // for ko in T.Pipelined(T.ceildiv(K * K * C, block_K), num_stages=num_stages)
    for (int ko = 0; ko < ko_end; ++ko) {
        copies_wait<num_stages - 2>();  // this thread's part of tile ko has arrived
        // tile ko is complete for all threads; nobody still reads the stage refilled next
        __syncthreads();
        if (ko + num_stages - 1 < ko_end) load_tiles(ko + num_stages - 1);
        copies_commit();  // empty groups at the end keep the count for copies_wait right

        // T.gemm(data_shared, kernel_shared, out_local)
        for (int k = 0; k < block_K; k += 16) {
            unsigned a[4][4], b[4][4];
            for (int m = 0; m < 4; ++m) {
                const int row = warp_m + m * 16 + lane % 16, col = k + lane / 16 * 8;
                load_matrices(a[m], &data_shared[stage][row][data_col(row, col)]);
            }
            for (int n = 0; n < 4; ++n) {
                const int row = k + lane % 16, col = warp_n + n * 16 + lane / 16 * 8;
                load_matrices_transposed(b[n], &kernel_shared[stage][row][tile_col(row, col)]);
            }
            for (int m = 0; m < 4; ++m)
                for (int n = 0; n < 8; ++n)
                    mma(out_local[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
        }
        stage = stage + 1 < num_stages ? stage + 1 : 0;
    }
    // nobody still touches data_shared and kernel_shared, whose bytes out_tile takes
    __syncthreads();

    // T.copy(out_local, out_flat[by * block_M, bx * block_N])
    UNROLL
    for (int m = 0; m < 4; ++m)
        for (int n = 0; n < 8; ++n)
            for (int h = 0; h < 2; ++h) {
                const int i = warp_m + m * 16 + h * 8 + lane / 4, j = warp_n + n * 8 + lane % 4 * 2;
                store_pair(&out_tile[i][tile_col(i, j)], out_local[m][n][h * 2],
                           out_local[m][n][h * 2 + 1]);
            }
    __syncthreads();  // out_tile is complete

    // whole rows of out leave together, 16 bytes a thread
    ROLLED
    for (int turn = 0; turn < 16; ++turn) {
        const int i = turn * 8 + threadIdx.x / 16, j = threadIdx.x % 16 * 8;
        __align__(16) half out_tile_part[8];
        load_vector(out_tile_part, &out_tile[i][tile_col(i, j)]);
        store_vector(&out[size_t(by * block_M + i) * F + bx * block_N + j], out_tile_part);
    }
}
