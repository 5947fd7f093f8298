// C[M, N] = A[M, K] @ B[K, N], all row-major halves, f32 accumulation.
// Two consumer warpgroups of 64 x 128, one producer thread, a ring of stages.
//
// tensor maps (128-byte swizzle): A box {64 k, 128 m}; B box {64 n, 64 k}; C box {64 n, 64 m}
// nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a -cubin gemm.cu
#include <cuda_fp16.h>

constexpr int block_M = 128, block_N = 128, block_K = 64, stages = 4;
constexpr int consumers = 2, threads = 128 * (1 + consumers);

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

struct Shared {
    alignas(1024) half A[stages][block_M * block_K];
    alignas(1024) half B[stages][block_K * block_N];  // two slabs of 64 columns
    alignas(1024) half C[consumers][64 * block_N];    // two slabs of 64 columns
    alignas(8) unsigned long long full[stages];
    unsigned long long empty[stages];
};
static_assert(sizeof(Shared) <= 232448, "fits a block");

// ---- barriers

static __device__ __forceinline__ unsigned shared_addr(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}
// `count` arrivals a phase.
static __device__ __forceinline__ void barrier_init(unsigned long long* bar, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_addr(bar)), "r"(count) : "memory");
}
// Publishes inits to TMA; a __syncthreads follows.
static __device__ __forceinline__ void barriers_visible() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Arrives once and announces bytes.
static __device__ __forceinline__ void barrier_expect(unsigned long long* bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(shared_addr(bar)), "r"(bytes) : "memory");
}
static __device__ __forceinline__ void barrier_arrive(unsigned long long* bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_addr(bar)) : "memory");
}
// Blocks until the phase of that parity is over.
static __device__ __forceinline__ void barrier_wait(unsigned long long* bar, unsigned parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra over;\n"
        "bra again;\n"
        "over:\n"
        "}\n" :: "r"(shared_addr(bar)), "r"(parity) : "memory");
}

// ---- copies

// A box to shared memory; its bytes are reported to `bar`.
static __device__ __forceinline__ void tma_load(void* dst, const TensorMap* map, unsigned long long* bar, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4}], [%2];"
        :: "r"(shared_addr(dst)), "l"(map), "r"(shared_addr(bar)), "r"(x), "r"(y) : "memory");
}
static __device__ __forceinline__ void tma_store(const TensorMap* map, const void* src, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
        :: "l"(map), "r"(shared_addr(src)), "r"(x), "r"(y) : "memory");
}
static __device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// The sources of all but n groups may be reused.
template <int n>
static __device__ __forceinline__ void tma_store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(n) : "memory");
}
// My shared writes become visible to TMA and wgmma after the next barrier.
static __device__ __forceinline__ void publish_to_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- matrix

// K-major tile with the 128-byte swizzle: groups of 8 rows are 1024 bytes apart.
static __device__ __forceinline__ unsigned long long k_major(const void* p) {
    return (1ull << 62) | (1024ull >> 4 << 32) | (16ull >> 4 << 16) | (shared_addr(p) >> 4);
}
// MN-major: groups of 8 k 1024 bytes apart, slabs of 64 columns block_K * 128.
static __device__ __forceinline__ unsigned long long mn_major(const void* p) {
    return (1ull << 62) | (1024ull >> 4 << 32) | (block_K * 128ull >> 4 << 16) | (shared_addr(p) >> 4);
}
static __device__ __forceinline__ void mma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static __device__ __forceinline__ void mma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int n>
static __device__ __forceinline__ void mma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(n) : "memory");
}

#define EIGHT(d, i) \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

// acc (+)= A (64 x 16, K-major) @ B (16 x 128, MN-major)
static __device__ __forceinline__ void mma_m64n128k16(float (&acc)[64], unsigned long long a, unsigned long long b,
                                               int accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16\n"
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,\n"
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,\n"
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,\n"
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63},\n"
        " %64, %65, p, 1, 1, 0, 1;\n"
        "}\n"
        : EIGHT(acc, 0), EIGHT(acc, 8), EIGHT(acc, 16), EIGHT(acc, 24), EIGHT(acc, 32), EIGHT(acc, 40),
          EIGHT(acc, 48), EIGHT(acc, 56)
        : "l"(a), "l"(b), "r"(accumulate) : "memory");
}

// One stage: descriptors step 32 bytes along k in A, 16 rows of 128 bytes in B.
static __device__ __forceinline__ void gemm_tile(float (&acc)[64], const half* A, const half* B, bool first) {
    unsigned long long a = k_major(A), b = mn_major(B);
#pragma unroll
    for (int k = 0; k < block_K / 16; ++k) {
        mma_m64n128k16(acc, a, b, first && k == 0 ? 0 : 1);
        a += 32 >> 4;
        b += 2048 >> 4;
    }
}

template <int n>
static __device__ __forceinline__ void set_registers_up() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(n)); }
template <int n>
static __device__ __forceinline__ void set_registers_down() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(n)); }

// Stage and phase of a ring.
struct Ring {
    int stage = 0;
    unsigned phase = 0;
    __device__ __forceinline__ void advance() {
        if (++stage == stages) stage = 0, phase ^= 1;
    }
};

static __device__ __forceinline__ unsigned pack(float lo, float hi) {
    half2 pair = __floats2half2_rn(lo, hi);
    return *reinterpret_cast<unsigned*>(&pair);
}

// ---- roles

static __device__ __forceinline__ void produce(Shared& shared, const TensorMap* A, const TensorMap* B, int row, int column,
                                        int blocks) {
    Ring ring;
    for (int ko = 0; ko < blocks; ++ko) {
        barrier_wait(&shared.empty[ring.stage], ring.phase ^ 1);  // consumers have left the stage
        unsigned long long* full = &shared.full[ring.stage];
        barrier_expect(full, (block_M + block_N) * block_K * 2);
        tma_load(shared.A[ring.stage], A, full, ko * block_K, row);
        tma_load(shared.B[ring.stage], B, full, column, ko * block_K);
        tma_load(shared.B[ring.stage] + 64 * block_K, B, full, column + 64, ko * block_K);
        ring.advance();
    }
}

static __device__ __forceinline__ void consume(Shared& shared, const TensorMap* C, int group, int row, int column, int blocks) {
    const int thread = threadIdx.x % 128, lane = thread % 32, warp = thread / 32;
    float acc[64];
    Ring ring;
    for (int ko = 0; ko < blocks; ++ko) {
        barrier_wait(&shared.full[ring.stage], ring.phase);  // the stage has arrived
        mma_begin();
        gemm_tile(acc, shared.A[ring.stage] + group * 64 * block_K, shared.B[ring.stage], ko == 0);
        mma_commit();
        mma_wait<0>();
        if (lane == 0) barrier_arrive(&shared.empty[ring.stage]);  // the producer may refill it
        ring.advance();
    }
    // Two slabs of 64 columns, 16-byte chunk c of row r at c ^ (r % 8).
    half* tile = shared.C[group];
    const int r = 16 * warp + lane % 16;
#pragma unroll
    for (int j = 0; j < block_N / 16; ++j) {
        const int chunk = j % 4 * 2 + lane / 16;
        half* at = tile + j / 4 * 64 * 64 + r * 64 + (chunk ^ (r % 8)) * 8;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                     :: "r"(shared_addr(at)), "r"(pack(acc[8 * j], acc[8 * j + 1])),
                        "r"(pack(acc[8 * j + 2], acc[8 * j + 3])), "r"(pack(acc[8 * j + 4], acc[8 * j + 5])),
                        "r"(pack(acc[8 * j + 6], acc[8 * j + 7])) : "memory");
    }
    publish_to_async();
    asm volatile("bar.sync %0, 128;" :: "r"(1 + group) : "memory");  // the tile is complete
    if (thread == 0) {
        tma_store(C, tile, column, row + group * 64);
        tma_store(C, tile + 64 * 64, column + 64, row + group * 64);
        tma_store_commit();
        tma_store_wait_read<0>();
    }
}

extern "C" __global__ void __launch_bounds__(threads, 1)
gemm(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, const __grid_constant__ TensorMap C, int K) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    const int row = blockIdx.y * block_M, column = blockIdx.x * block_N, blocks = (K + block_K - 1) / block_K;
    const int group = threadIdx.x / 128;
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) {
            barrier_init(&shared.full[s], 1);
            barrier_init(&shared.empty[s], 4 * consumers);
        }
        barriers_visible();
    }
    __syncthreads();  // the barriers are there
    if (group == 0) {
        set_registers_down<40>();
        if (threadIdx.x == 0) produce(shared, &A, &B, row, column, blocks);
    } else {
        set_registers_up<232>();
        consume(shared, &C, group - 1, row, column, blocks);
    }
}
