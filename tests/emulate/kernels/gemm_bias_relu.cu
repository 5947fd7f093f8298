// gemm_bias_relu: C = relu(A @ B + bias)      from gemm_bias_relu.py by tile2c 0.1.0
//   target   cuda:sm_80 (has run on silicon)
//   again    tile2c gemm_bias_relu.py -o . --target cuda:sm_80
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin gemm_bias_relu.cu
//   launch   grid (N / 128, (M + 127) / 128), block 128, no dynamic shared memory
//   sizes    M is free; N = 256 and K = 512 are fixed
//   text     sha256 1d0c6e0f2b7a  (edit freely: `tile2c --merge` keeps your changes)
#include <cuda_fp16.h>

constexpr int N = 256, K = 512;
constexpr int block_M = 128, block_N = 128, block_K = 32;
constexpr int num_stages = 3;

// Shared tiles hold 16-byte chunks of 8 halves; chunk c of a row sits at c ^ (some bits of the row)
// so that the 8 rows read by one phase of ldmatrix fall into 8 different groups of banks.
static __device__ int a_col(int row, int k) { return (k / 8 ^ row / 2 % 4) * 8; }  // 32 a row
static __device__ int b_col(int row, int n) { return (n / 8 ^ row % 8) * 8; }  // 128 a row

// Starts a 16-byte copy to shared memory. When `valid` is false it writes zeros and reads nothing.
static __device__ void copy_async(half* shared, const half* global, bool valid) {
    const unsigned dst = __cvta_generic_to_shared(shared);
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(global), "r"(bytes)
                 : "memory");
}
static __device__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
static __device__ void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Loads four 8x8 matrices: lane l passes the address of row l % 8 of matrix l / 8.
static __device__ void load_matrices(unsigned (&r)[4], const half* row) {
    const unsigned src = __cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(src)
                 : "memory");
}
static __device__ void load_matrices_transposed(unsigned (&r)[4], const half* row) {
    const unsigned src = __cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(src)
                 : "memory");
}

// c[16x8] += a[16x16] * b[16x8]. Lane l holds rows l / 4 and l / 4 + 8, columns l % 4 * 2 + {0, 1}.
static __device__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(128) gemm_bias_relu(
    const half* __restrict__ A,  // [M, K]
    const half* __restrict__ B,  // [K, N]
    const half* __restrict__ bias,  // [N]
    half* __restrict__ C,  // [M, N]
    int M) {
    __shared__ __align__(128) half A_shared[num_stages][block_M][block_K];  // 24 KiB
    __shared__ __align__(128) half B_shared[num_stages][block_K][block_N];  // 24 KiB
    float C_local[4][8][4] = {};  // [block_M, block_N] over the block; T.clear(C_local)

    const int bx = blockIdx.x, by = blockIdx.y;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_m = warp / 2 * 64, warp_n = warp % 2 * 64;  // 2 x 2 warps, 64 x 64 of C each

    auto load_tiles = [&](int ko) {
        const int stage = ko % num_stages;
        // T.copy(A[by * block_M, ko * block_K], A_shared)
        for (int chunk = threadIdx.x; chunk < block_M * block_K / 8; chunk += 128) {
            const int i = chunk / 4, k = chunk % 4 * 8;
            const int row = by * block_M + i;
            const bool inside = row < M;  // the only edge: N and K are multiples of the tile
            const half* src = &A[inside ? size_t(row) * K + ko * block_K + k : 0];
            copy_async(&A_shared[stage][i][a_col(i, k)], src, inside);
        }
        // T.copy(B[ko * block_K, bx * block_N], B_shared)
        for (int chunk = threadIdx.x; chunk < block_K * block_N / 8; chunk += 128) {
            const int k = chunk / 16, j = chunk % 16 * 8;
            const half* src = &B[size_t(ko * block_K + k) * N + bx * block_N + j];
            copy_async(&B_shared[stage][k][b_col(k, j)], src, true);
        }
    };

    for (int ko = 0; ko < num_stages - 1; ++ko) {
        load_tiles(ko);
        copies_commit();
    }
    // for ko in T.Pipelined(K // block_K, num_stages=3)
    for (int ko = 0; ko < K / block_K; ++ko) {
        const int stage = ko % num_stages;
        copies_wait<num_stages - 2>();  // this thread's part of tile ko has arrived
        __syncthreads();  // so has everyone's; and nobody still reads the stage refilled next
        if (ko + num_stages - 1 < K / block_K) load_tiles(ko + num_stages - 1);
        copies_commit();  // empty groups at the end keep the count for copies_wait right

        // T.gemm(A_shared, B_shared, C_local)
        for (int k = 0; k < block_K; k += 16) {
            unsigned a[4][4], b[4][4];
            for (int m = 0; m < 4; ++m) {
                const int row = warp_m + m * 16 + lane % 16;
                load_matrices(a[m], &A_shared[stage][row][a_col(row, k + lane / 16 * 8)]);
            }
            for (int n = 0; n < 4; ++n) {
                const int row = k + lane % 16, col = warp_n + n * 16 + lane / 16 * 8;
                load_matrices_transposed(b[n], &B_shared[stage][row][b_col(row, col)]);
            }
            for (int m = 0; m < 4; ++m)
                for (int n = 0; n < 8; ++n)
                    mma(C_local[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
        }
    }

    // Bias and activation are applied while the sums are still in registers.
    // for i, j in T.Parallel(block_M, block_N)
    for (int m = 0; m < 4; ++m)
        for (int n = 0; n < 8; ++n)
            for (int h = 0; h < 2; ++h) {  // upper and lower half of the 16 x 8 fragment
                const int i = by * block_M + warp_m + m * 16 + h * 8 + lane / 4;
                const int j = bx * block_N + warp_n + n * 8 + lane % 4 * 2;
                if (i >= M) continue;
                const float x = C_local[m][n][h * 2] + __half2float(bias[j]);
                const float y = C_local[m][n][h * 2 + 1] + __half2float(bias[j + 1]);
                half2* dst = reinterpret_cast<half2*>(&C[size_t(i) * N + j]);
                *dst = __floats2half2_rn(fmaxf(x, 0.f), fmaxf(y, 0.f));  // T.max(x, 0)
            }
}
