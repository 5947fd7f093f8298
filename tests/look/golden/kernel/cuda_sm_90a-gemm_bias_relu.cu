// gemm_bias_relu: C = relu(A @ B + bias)
//   from     gemm_bias_relu.py by tile2c 0.1.0
//   target   cuda:sm_90a (texts for it have run on an H200)
//   again    tile2c gemm_bias_relu.py -o . --target cuda:sm_90a
//   compile  nvcc -arch=sm_90a -O3 -std=c++17 -cubin gemm_bias_relu.cu -o gemm_bias_relu.cubin
//   launch   grid (min(sms, (N + 127) / 128 * ((M + 127) / 128))), block 384, 132096 bytes of
//            dynamic shared memory
//   launch   gemm_bias_relu_any: grid ((N + 127) / 128, (M + 127) / 128), block 256, no dynamic
//            shared memory; any sizes and addresses, tensors as pointers
//   launch   gemm_bias_relu_rows_float16: block 256, no dynamic shared memory, a block for 2048
//            columns of a row; tile2c.json says when
//   sizes    M, N and K are free
//   roles    threads 0 to 255: 2 warpgroups multiply 64 x 128 each (wgmma); thread 256 loads (TMA)
//   map      A_map: A in boxes of 128 x 32, 64B swizzle
//   map      B_map: B in boxes of 32 x 64, 128B swizzle
//   map      C_map: C in boxes of 64 x 64, 128B swizzle
//   tiles    blocks take them in turn, so any grid along x will do, any even one for
//            gemm_bias_relu_clusters; sms is the number of the device's multiprocessors
//   repack   K % 8 != 0: where that pays, A is copied to aligned rows of a workspace first
//   cluster  gemm_bias_relu_clusters: the same launch in clusters of 2 along x, an even grid, where
//            min(sms, (N + 127) / 128 * ((M + 127) / 128)) % 2 == 0 and (M + 127) / 128 % 2 == 0
//            and (N + 127) / 128 * ((M + 127) / 128) > sms and N * 2 % 128 != 0; rows of whole
//            lines of 128 bytes load as fast without
//   text     sha256 5c5439303e4f  (edit freely: `tile2c --merge` keeps your changes)
#include <cuda_fp16.h>

constexpr int block_M = 128;
constexpr int block_N = 128;
constexpr int block_K = 32;
constexpr int num_stages = 3;
constexpr int ring_stages = 6;

// Registers have no address: long loops through them have to be unrolled, short ones are anyway.
#define UNROLL _Pragma("unroll")

// Loops that stay rolled: unrolled, they would only be more code to fetch.
#define ROLLED _Pragma("unroll 1")

// A_shared: chunk c of 8 elements of a row lies at c ^ row / 2 % 4, so that rows that are read
// together fall into different groups of banks.
static __device__ int A_col(unsigned row, unsigned col) { return col ^ row / 2 % 4 * 8; }

// B_shared: chunk c of 8 elements of a row lies at c ^ row % 8, so that rows that are read together
// fall into different groups of banks.
static __device__ int B_col(unsigned row, unsigned col) { return col ^ row % 8 * 8; }

// C_tile: chunk c of 8 elements of a row lies at c ^ row % 8, so that rows that are read together
// fall into different groups of banks.
static __device__ int C_col(unsigned row, unsigned col) { return col ^ row % 8 * 8; }

struct Shared {
    alignas(1024) half A_shared[ring_stages][block_M][32];  // 48 KiB
    alignas(1024) half B_shared[ring_stages][2][block_K][64];  // 48 KiB, in slabs of 64 columns
    alignas(1024) half C_tile[2][2][64][64];  // 32 KiB, a tile a warpgroup, in slabs of 64 columns
    unsigned long long full[ring_stages], empty[ring_stages];  // mbarriers: arrived, free again
};

static_assert(sizeof(Shared) == 132096);  // what the launch passes; 232448 at most

// A block's shared memory, as much as its launch says.
extern __shared__ __align__(1024) unsigned char shared_bytes[];

// `n` neighbours that move in one access.
template <typename T, int n>
struct alignas(n * sizeof(T)) Pack {
    T at[n];
};

// Reads n neighbours in one access, or zeros where `valid` is not positive: none straddles the
// edge. As words, which stay whole in registers: taken apart, they would be waited for at once.
template <typename T, int n>
static __device__ void load_words(T (&dst)[n], const T* src, int valid) {
    using Words = Pack<unsigned, n * sizeof(T) / 4>;
    Words read = {};
    if (valid > 0) read = *reinterpret_cast<const Words*>(src);
    *reinterpret_cast<Words*>(dst) = read;
}

// Reads n neighbours one by one, as no wider access may start at any address; zeros at and past
// `valid`.
template <typename T, int n>
static __device__ void load_elements(T (&dst)[n], const T* src, int valid) {
    for (int v = 0; v < n; ++v) dst[v] = v < valid ? src[v] : T();
}

// Writes n neighbours one by one, as no wider access may start at any address; leaves out those at
// and past `valid`.
template <typename T, int n>
static __device__ void store_elements(T* dst, const T (&src)[n], int valid) {
    for (int v = 0; v < n; ++v)
        if (v < valid) dst[v] = src[v];
}

// Copies n neighbours to shared memory one by one, as no wider access may start at any address;
// zeros at and past `valid`.
template <int n, typename T>
static __device__ void copy_elements(T* shared, const T* global, int valid) {
    for (int v = 0; v < n; ++v) shared[v] = v < valid ? global[v] : T();
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

// Where a tensor lies and how it is cut into boxes: made by the host, opaque here.
struct alignas(64) TensorMap {
    unsigned char bytes[128];
};

// The 32-bit address of something in shared memory.
static __device__ unsigned shared_addr(const void* p) { return __cvta_generic_to_shared(p); }

// A fresh mbarrier: each phase ends after n arrivals and the bytes they announced.
static __device__ void barrier_init(unsigned long long& barrier, int n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_addr(&barrier)), "r"(n)
                 : "memory");
}

// Makes new mbarriers known to TMA; other threads learn of them at the barrier that follows.
static __device__ void barriers_visible() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// One arrival; the phase also waits for this many bytes from TMA.
static __device__ void barrier_expect(unsigned long long& barrier, int bytes) {
    const unsigned at = shared_addr(&barrier);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
}

// One arrival.
static __device__ void barrier_arrive(unsigned long long& barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_addr(&barrier))
                 : "memory");
}

// Waits until the phase of this parity is over; before the first phase, parity 1 is.
static __device__ void barrier_wait(unsigned long long& barrier, int parity) {
    int over;
    do {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.s32 %0, 1, 0, p;\n"
            "}"
            : "=r"(over)
            : "r"(shared_addr(&barrier)), "r"(parity)
            : "memory");
    } while (!over);
}

// Where a role stands in the ring of stages: the stage, and the parity of its round through them.
template <int stages>
struct Ring {
    int stage = 0, phase = 0;
    __device__ void advance() {
        if (++stage < stages) return;
        stage = 0;
        phase ^= 1;
    }
};

// One arrival at the same barrier of a block of the cluster.
template <int cluster_size>
static __device__ void barrier_arrive_at(unsigned long long& barrier, int block) {
    if constexpr (cluster_size == 1) {
        barrier_arrive(barrier);
    } else {
        asm volatile(
            "{\n"
            ".reg .b32 there;\n"
            "mapa.shared::cluster.u32 there, %0, %1;\n"
            "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
            "}" ::"r"(shared_addr(&barrier)),
            "r"(block)
            : "memory");
    }
}

// This thread has got here; what it wrote before, others of the cluster may read after their wait.
static __device__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// Waits until all threads of the cluster have arrived.
static __device__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// A barrier of one warpgroup.
static __device__ void warpgroup_sync(int warpgroup) {
    asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 2) : "memory");
}

// Fetches what TMA has to know of a tensor, before it is needed.
static __device__ void tma_prefetch(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Starts the load of a box at (x, y); zeros stand in for what lies outside. Its bytes go to the
// barrier.
static __device__ void tma_load(void* shared, const TensorMap& map, unsigned long long& barrier,
                                int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_addr(shared)),
        "l"(&map), "r"(shared_addr(&barrier)), "r"(x), "r"(y)
        : "memory");
}

// Starts the load of a box at (x, y), to the same place in each block of the cluster; zeros stand
// in for what lies outside. Its bytes go to the barrier of each.
template <int cluster_size>
static __device__ void tma_load_to_all(void* shared, const TensorMap& map,
                                       unsigned long long& barrier, int x, int y) {
    if constexpr (cluster_size == 1) {
        tma_load(shared, map, barrier, x, y);
    } else {
        const unsigned short blocks = (1 << cluster_size) - 1;  // one bit each
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_addr(shared)),
            "l"(&map), "r"(shared_addr(&barrier)), "r"(x), "r"(y), "h"(blocks)
            : "memory");
    }
}

// Starts the store of a box at (x, y); what lies outside is left out.
static __device__ void tma_store(const TensorMap& map, const void* shared, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
        "[%0, {%2, %3}], [%1];" ::"l"(&map),
        "r"(shared_addr(shared)), "r"(x), "r"(y)
        : "memory");
}

// Closes the group of this thread's stores.
static __device__ void tma_store_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until at most `pending` of this thread's groups of stores still read shared memory.
template <int pending>
static __device__ void tma_store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

// This thread's writes to shared memory become visible to TMA after the next barrier.
static __device__ void publish_to_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Leaves the warpgroup n registers a thread; the rest is free for others.
template <int n>
static __device__ void fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n));
}

// Gives the warpgroup n registers a thread, as soon as they are free.
template <int n>
static __device__ void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n));
}

// wgmma descriptor of a tile whose rows run along K: groups of 8 swizzled rows follow one another.
// A step along K is a step in the row: the hardware swizzles the address it arrives at.
template <int row_bytes, int cluster_size>
static __device__ unsigned long long k_major(const void* p) {
    constexpr unsigned long long swizzle = row_bytes == 128 ? 1 : row_bytes == 64 ? 2 : 3;
    constexpr unsigned long long group = 8 * row_bytes / 16;
    // in a cluster the block's rank stands above these bits
    const unsigned at = cluster_size == 1 ? shared_addr(p) : shared_addr(p) & 0x3ffff;
    return at >> 4 | 1ull << 16 | group << 32 | swizzle << 62;
}

// wgmma descriptor of a tile whose rows run along M or N: 8 rows are 8 steps of K, and the next
// columns lie in the next slab, `rows` rows on.
template <int row_bytes, int rows, int cluster_size>
static __device__ unsigned long long mn_major(const void* p) {
    constexpr unsigned long long swizzle = row_bytes == 128 ? 1 : row_bytes == 64 ? 2 : 3;
    constexpr unsigned long long slab = rows * row_bytes / 16, group = 8 * row_bytes / 16;
    // in a cluster the block's rank stands above these bits
    const unsigned at = cluster_size == 1 ? shared_addr(p) : shared_addr(p) & 0x3ffff;
    return at >> 4 | slab << 16 | group << 32 | swizzle << 62;
}

// Registers and tiles written so far are ready for the products that follow.
static __device__ void mma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Starts c[64 x 128] = a[64 x 16] * b[16 x 128] + (accumulate ? c : 0) for a warpgroup. Thread t
// holds rows 16 (t / 32) + t % 32 / 4 + {0, 8}, columns t % 4 * 2 + {0, 1} of each eight.
static __device__ void mma_m64n128k16(float (&c)[16][4], unsigned long long a, unsigned long long b,
                                      bool accumulate) {
#define ROW(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
        "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
        "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, p, 1, 1, 0, 1;\n"
        "}"
        : ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8), ROW(9), ROW(10),
          ROW(11), ROW(12), ROW(13), ROW(14), ROW(15)
        : "l"(a), "l"(b), "r"(int(accumulate)));
#undef ROW
}

// Closes the batch of products started so far.
static __device__ void mma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most `pending` batches of products are open.
template <int pending>
static __device__ void mma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Keeps the compiler from moving uses of the sums across this point.
template <int m, int n>
static __device__ void pin(float (&c)[m][n][4]) {
    UNROLL
    for (int i = 0; i < m * n * 4; ++i)
        asm volatile("" : "+f"(c[i / 4 / n][i / 4 % n][i % 4])::"memory");
}

// Two values, rounded, in one register.
static __device__ unsigned packed_pair(float x, float y) {
    const half2 both = __floats2half2_rn(x, y);
    return reinterpret_cast<const unsigned&>(both);
}

// The larger of each of two values and a bound.
static __device__ unsigned at_least(unsigned values, float bound) {
    const half2 both = __hmax2(reinterpret_cast<const half2&>(values), __float2half2_rn(bound));
    return reinterpret_cast<const unsigned&>(both);
}

// Writes four 8x8 matrices: lane l passes the address of row l % 8 of matrix l / 8.
static __device__ void store_matrices(half* row, unsigned r0, unsigned r1, unsigned r2,
                                      unsigned r3) {
    const unsigned dst = shared_addr(row);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(dst),
                 "r"(r0), "r"(r1), "r"(r2), "r"(r3)
                 : "memory");
}

// What a block does; one that is alone is a cluster of one.
template <int cluster_size>
static __device__ void gemm_bias_relu_block(const TensorMap& A_map, const TensorMap& B_map,
                                            const TensorMap& C_map,
                                            const half* __restrict__ bias,  // [N]
                                            int M, int N, int K) {
    auto& [A_shared, B_shared, C_tile, full, empty] = *reinterpret_cast<Shared*>(shared_bytes);

    // Blocks stay and take tiles in turn: the next one loads while the last is stored.
    const int tiles_x = (N + block_N - 1) / block_N, tiles_y = (M + block_M - 1) / block_M;
    const int ko_end = (K + block_K - 1) / block_K;

    // Panels of 8 rows of tiles: blocks that run together share operands
    auto find_tile = [&](int tile, int& bx, int& by) {
        const int panel_size = 8;  // rows of tiles
        const int panel = tile / (panel_size * tiles_x);
        const int panel_rows = min(panel_size, tiles_y - panel * panel_size);
        const int within = tile % (panel_size * tiles_x);
        bx = within / panel_rows;
        by = panel * panel_size + within % panel_rows;
    };

    // Blocks of a cluster read the same B_shared: each loads its part for all of them.
    const int rank = blockIdx.x % cluster_size;
    if (threadIdx.x == 0) {
        tma_prefetch(A_map);
        tma_prefetch(B_map);
        tma_prefetch(C_map);
        for (int stage = 0; stage < ring_stages; ++stage) {
            barrier_init(full[stage], 1);  // the producer, and its bytes
            // one arrival a consumer warp of the cluster
            barrier_init(empty[stage], 8 * cluster_size);
        }
        barriers_visible();
    }
    if constexpr (cluster_size == 1) {
        __syncthreads();  // the barriers are ready for everyone
    } else {
        cluster_arrive();
        cluster_wait();  // the barriers are ready for everyone in the cluster
    }

    // shuffled: uniform for the compiler
    const int warpgroup = __shfl_sync(0xffffffffu, int(threadIdx.x) / 128, 0);
    Ring<ring_stages> ring;
    if (warpgroup == 2) {  // the producer: one thread starts the loads
        fewer_registers<24>();
        if (threadIdx.x == 256) {
            for (int tile = blockIdx.x; tile < tiles_x * tiles_y; tile += gridDim.x) {
                int bx, by;
                find_tile(tile, bx, by);
                // for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages)
                for (int ko = 0; ko < ko_end; ++ko) {
                    // every consumer warp has read what the stage held
                    barrier_wait(empty[ring.stage], ring.phase ^ 1);
                    barrier_expect(full[ring.stage], sizeof(A_shared[0]) + sizeof(B_shared[0]));
                    // T.copy(A[by * block_M, ko * block_K], A_shared)
                    tma_load(&A_shared[ring.stage][0][0], A_map, full[ring.stage], ko * block_K,
                             by * block_M);
                    // T.copy(B[ko * block_K, bx * block_N], B_shared)
                    for (int slab = rank; slab < 2; slab += cluster_size)
                        tma_load_to_all<cluster_size>(&B_shared[ring.stage][slab][0][0], B_map,
                                                      full[ring.stage], bx * block_N + slab * 64,
                                                      ko * block_K);
                    ring.advance();
                }
            }
            // The block's memory stays until the consumers of all blocks have left all stages.
            if constexpr (cluster_size > 1) {
                for (int stage = 0; stage < ring_stages; ++stage) {
                    barrier_wait(empty[ring.stage], ring.phase ^ 1);
                    ring.advance();
                }
            }
        }
        return;
    }
    more_registers<240>();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group_m = warpgroup * 64;

    for (int tile = blockIdx.x; tile < tiles_x * tiles_y; tile += gridDim.x) {
        int bx, by;
        // [block_M, block_N] over the block; T.clear(C_local): the first product overwrites
        float C_local[1][16][4];
        __align__(4) half bias_held[16][2];  // [block_N] over the block

        // for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages)
        for (int ko = 0; ko < ko_end; ++ko) {
            barrier_wait(full[ring.stage], ring.phase);  // the tiles of round ko have arrived
            mma_begin();
            // T.gemm(A_shared, B_shared, C_local)
            UNROLL
            for (int k = 0; k < block_K; k += 16)
                mma_m64n128k16(C_local[0],
                               k_major<64, cluster_size>(&A_shared[ring.stage][group_m][k]),
                               mn_major<128, block_K, cluster_size>(&B_shared[ring.stage][0][k][0]),
                               ko != 0 || k > 0);
            mma_commit();
            if (ko == 0) {  // while the first products run
                find_tile(tile, bx, by);

                // bias is loaded early: behind the last product, all would wait for it
                UNROLL
                for (int n = 0; n < 16; ++n) {
                    const int j = n * 8 + lane % 4 * 2;
                    const int at = bx * block_N + j;
                    load_words(bias_held[n], &bias[at], N - at);
                }
            }
            mma_wait<0>();  // this warp has read the tiles
            // the stage may be refilled
            if (lane < cluster_size) barrier_arrive_at<cluster_size>(empty[ring.stage], lane);
            ring.advance();
        }
        pin(C_local);

        // Bias and activation are applied while the sums are still in registers.
        // for i, j in T.Parallel(block_M, block_N)
        UNROLL
        for (int n = 0; n < 16; ++n)
            for (int h = 0; h < 2; ++h)
                for (int v = 0; v < 2; ++v)
                    C_local[0][n][h * 2 + v] += __half2float(bias_held[n][v]);

        // T.copy(C_local, C[by * block_M, bx * block_N])
        tma_store_wait_read<0>();  // TMA has read the last part
        warpgroup_sync(warpgroup);  // its place may be overwritten
        // the maximum of rounded pairs: that of the sums, rounded, is the same
        UNROLL
        for (int n = 0; n < 16; n += 2) {
            const int row = warp % 4 * 16 + lane % 16, col = n * 8 + lane / 16 * 8;
            store_matrices(&C_tile[warpgroup][col / 64][row][C_col(row, col % 64)],
                           at_least(packed_pair(C_local[0][n][0], C_local[0][n][1]), 0.f),
                           at_least(packed_pair(C_local[0][n][2], C_local[0][n][3]), 0.f),
                           at_least(packed_pair(C_local[0][n + 1][0], C_local[0][n + 1][1]), 0.f),
                           at_least(packed_pair(C_local[0][n + 1][2], C_local[0][n + 1][3]), 0.f));
        }
        publish_to_async();  // TMA will see what this thread wrote
        warpgroup_sync(warpgroup);  // the warpgroup's part is complete
        if (threadIdx.x % 128 == 0) {
            for (int slab = 0; slab < 2; ++slab)
                tma_store(C_map, &C_tile[warpgroup][slab][0][0], bx * block_N + slab * 64,
                          by * block_M + group_m);
            tma_store_commit();
        }
    }

    tma_store_wait_read<0>();  // the shared memory outlives its readers
}

// For rows that TMA can load, or that were copied to such rows: A, B and C at multiples of 16
// bytes, bias at multiples of 4 bytes, K % 8 == 0, N % 8 == 0, M > 0, K > 0, N > 0.
extern "C" __global__ void __launch_bounds__(384, 1) gemm_bias_relu(
    const __grid_constant__ TensorMap A_map,  // A in boxes of 128 x 32
    const __grid_constant__ TensorMap B_map,  // B in boxes of 32 x 64
    const __grid_constant__ TensorMap C_map,  // C in boxes of 64 x 64
    const half* __restrict__ bias,  // [N]
    int M, int N, int K) {
    gemm_bias_relu_block<1>(A_map, B_map, C_map, bias, M, N, K);
}

// The same for clusters of two blocks: they load B_shared for each other.
extern "C" __global__ void __launch_bounds__(384, 1) gemm_bias_relu_clusters(
    const __grid_constant__ TensorMap A_map,  // A in boxes of 128 x 32
    const __grid_constant__ TensorMap B_map,  // B in boxes of 32 x 64
    const __grid_constant__ TensorMap C_map,  // C in boxes of 64 x 64
    const half* __restrict__ bias,  // [N]
    int M, int N, int K) {
    gemm_bias_relu_block<2>(A_map, B_map, C_map, bias, M, N, K);
}

// Any other sizes and addresses: mma.sync, tiles loaded element by element.
extern "C" __global__ void __launch_bounds__(256) gemm_bias_relu_any(
    const half* __restrict__ A,  // [M, K]
    const half* __restrict__ B,  // [K, N]
    const half* __restrict__ bias,  // [N]
    half* __restrict__ C,  // [M, N]
    int M, int N, int K) {
    __shared__ __align__(128) half A_shared[num_stages][block_M][block_K];  // 24 KiB
    __shared__ __align__(128) half B_shared[num_stages][block_K][block_N];  // 24 KiB
    float C_local[2][8][4] = {};  // [block_M, block_N] over the block; T.clear(C_local)

    const int bx = blockIdx.x, by = blockIdx.y;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_m = warp / 2 * 32, warp_n = warp % 2 * 64;  // 4 x 2 warps of 32 x 64

    const half* A_src = &A[size_t(by * block_M + threadIdx.x / 4) * K + threadIdx.x % 4 * 8];
    const half* B_src = &B[size_t(threadIdx.x / 16) * N + bx * block_N + threadIdx.x % 16 * 8];
    int fill = 0, stage = 0;  // stages: loaded next, in use
    auto load_tiles = [&](int ko) {
        // T.copy(A[by * block_M, ko * block_K], A_shared)
        UNROLL
        for (int turn = 0; turn < 2; ++turn) {
            const int i = turn * 64 + threadIdx.x / 4, j = threadIdx.x % 4 * 8;
            const int row = by * block_M + i, col = ko * block_K + j;
            const int valid = row < M ? K - col : 0;
            copy_elements<8>(&A_shared[fill][i][A_col(i, j)], A_src + size_t(turn * 64) * K, valid);
        }
        // T.copy(B[ko * block_K, bx * block_N], B_shared)
        UNROLL
        for (int turn = 0; turn < 2; ++turn) {
            const int i = turn * 16 + threadIdx.x / 16, j = threadIdx.x % 16 * 8;
            const int row = ko * block_K + i, col = bx * block_N + j;
            const int valid = row < K ? N - col : 0;
            copy_elements<8>(&B_shared[fill][i][B_col(i, j)], B_src + size_t(turn * 16) * N, valid);
        }
        A_src += block_K;
        B_src += size_t(block_K) * N;
        fill = fill + 1 < num_stages ? fill + 1 : 0;
    };

    const int ko_end = (K + block_K - 1) / block_K;

    // for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages)
    for (int ko = 1 - num_stages; ko < ko_end; ++ko) {  // rounds before the first one only load
        // tile ko is complete for all threads; nobody still reads the stage refilled next
        __syncthreads();
        if (ko + num_stages - 1 < ko_end) load_tiles(ko + num_stages - 1);
        if (ko < 0) continue;  // so far there is nothing to multiply

        // T.gemm(A_shared, B_shared, C_local)
        ROLLED
        for (int k = 0; k < block_K; k += 16) {
            unsigned a[2][4], b[4][4];
            for (int m = 0; m < 2; ++m) {
                const int row = warp_m + m * 16 + lane % 16, col = k + lane / 16 * 8;
                load_matrices(a[m], &A_shared[stage][row][A_col(row, col)]);
            }
            for (int n = 0; n < 4; ++n) {
                const int row = k + lane % 16, col = warp_n + n * 16 + lane / 16 * 8;
                load_matrices_transposed(b[n], &B_shared[stage][row][B_col(row, col)]);
            }
            for (int m = 0; m < 2; ++m)
                for (int n = 0; n < 8; ++n)
                    mma(C_local[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
        }
        stage = stage + 1 < num_stages ? stage + 1 : 0;
    }

    // Bias and activation are applied while the sums are still in registers.
    // for i, j in T.Parallel(block_M, block_N)
    UNROLL
    for (int n = 0; n < 8; ++n) {
        const int j = warp_n + n * 8 + lane % 4 * 2, at = bx * block_N + j;
        __align__(4) half bias_part[2];
        load_elements(bias_part, &bias[at], N - at);
        for (int m = 0; m < 2; ++m)
            for (int h = 0; h < 2; ++h)
                for (int v = 0; v < 2; ++v)
                    C_local[m][n][h * 2 + v] =
                        fmaxf(C_local[m][n][h * 2 + v] + __half2float(bias_part[v]), 0.f);
    }

    // T.copy(C_local, C[by * block_M, bx * block_N])
    UNROLL
    for (int m = 0; m < 2; ++m)
        for (int h = 0; h < 2; ++h)
            for (int n = 0; n < 8; ++n) {
                const int i = warp_m + m * 16 + h * 8 + lane / 4, j = warp_n + n * 8 + lane % 4 * 2;
                const int row = by * block_M + i, col = bx * block_N + j;
                if (row >= M) continue;  // the last tile may reach past the edge
                __align__(4) half C_part[2];
                for (int v = 0; v < 2; ++v) C_part[v] = __float2half_rn(C_local[m][n][h * 2 + v]);
                store_elements(&C[size_t(row) * N + col], C_part, N - col);
            }
}

// Copies rows between a tensor and a workspace, where they start as TMA wants them: a block has
// 2048 columns of a row, 8 of each thread.
extern "C" __global__ void __launch_bounds__(256) gemm_bias_relu_rows_float16(
    const half* __restrict__ from, half* __restrict__ to, int columns, int from_pitch,
    int to_pitch) {
    const int chunks = (columns + 2047) / 2048;
    const int row = blockIdx.x / chunks;
    const int first = blockIdx.x % chunks * 2048 + threadIdx.x;
    half kept[8];  // all on their way before the first is stored
    UNROLL
    for (int turn = 0; turn < 8; ++turn) {
        const int column = first + turn * 256;
        if (column < columns) kept[turn] = from[size_t(row) * from_pitch + column];
    }
    UNROLL
    for (int turn = 0; turn < 8; ++turn) {
        const int column = first + turn * 256;
        if (column < columns) to[size_t(row) * to_pitch + column] = kept[turn];
    }
}
