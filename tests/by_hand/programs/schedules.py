# Kernels that schedule themselves: barriers, bulk copies, roles and products as their author says.

import tilelang
import tilelang.language as T


@tilelang.jit
def one_stage(
    A,
    B,
    block_M=128,
    block_N=64,
    block_K=64,
    trans_A=False,
    trans_B=False,
    dtype=T.float16,
    out_dtype=T.float16,
):
    """One warpgroup loads, the other multiplies; a single stage goes to and fro between them."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((K, M) if trans_A else (M, K), dtype)
    B: T.Tensor((N, K) if trans_B else (K, N), dtype)
    C = T.empty((M, N), out_dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
        A_shared = T.alloc_shared((block_K, block_M) if trans_A else (block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_N, block_K) if trans_B else (block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        arrived = T.alloc_barrier(128)
        used = T.alloc_barrier(arrive_count=128)

        with T.ws(1):
            T.clear(C_local)
        for ko in T.serial(T.ceildiv(K, block_K)):
            with T.ws(0):
                T.barrier_wait(used, (ko + 1) % 2)
                if trans_A:
                    T.tma_copy(A[ko * block_K, by * block_M], A_shared, barrier=arrived)
                else:
                    T.tma_copy(A[by * block_M, ko * block_K], A_shared, barrier=arrived)
                if trans_B:
                    T.tma_copy(B[bx * block_N, ko * block_K], B_shared, barrier=arrived)
                else:
                    T.tma_copy(B[ko * block_K, bx * block_N], B_shared, barrier=arrived)
                T.barrier_arrive(arrived)
            with T.ws(1):
                T.barrier_wait(arrived, ko % 2)
                T.gemm(A_shared, B_shared, C_local, transpose_A=trans_A, transpose_B=trans_B)
                T.barrier_arrive(used)
        with T.ws(1):
            T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@tilelang.jit
def ring(A, B, block_M=128, block_N=64, block_K=32, num_stages=3, dtype=T.float16):
    """Two consumers on one tile, arrays of barriers, budgets of registers, a store by TMA."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=384) as (bx, by):
        A_shared = T.alloc_shared((num_stages, block_M, block_K), dtype)
        B_shared = T.alloc_shared((num_stages, block_K, block_N), dtype)
        C_shared = T.alloc_shared((block_M, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        full = T.alloc_barrier([1] * num_stages)
        free = T.alloc_barrier([256] * num_stages)
        tx = T.get_thread_binding()

        if tx < 128:
            T.dec_max_nreg(40)
            if tx == 0:  # one thread is the producer
                for ko in T.serial(T.ceildiv(K, block_K)):
                    T.mbarrier_wait_parity(free[ko % num_stages], (ko // num_stages + 1) % 2)
                    T.tma_copy(
                        A[
                            by * block_M : by * block_M + block_M,
                            ko * block_K : ko * block_K + block_K,
                        ],
                        A_shared[ko % num_stages, :, :],
                        barrier=full[ko % num_stages],
                    )
                    T.tma_copy(
                        B[
                            ko * block_K : ko * block_K + block_K,
                            bx * block_N : bx * block_N + block_N,
                        ],
                        B_shared[ko % num_stages, :, :],
                        barrier=full[ko % num_stages],
                    )
                    T.mbarrier_arrive(full[ko % num_stages])
        else:
            T.inc_max_nreg(232)
            T.clear(C_local)
            for ko in T.serial(T.ceildiv(K, block_K)):
                T.mbarrier_wait_parity(full[ko % num_stages], ko // num_stages % 2)
                T.gemm(A_shared[ko % num_stages, :, :], B_shared[ko % num_stages, :, :], C_local)
                T.mbarrier_arrive(free[ko % num_stages])
            T.copy(C_local, C_shared)
            T.tma_copy(C_shared, C[by * block_M, bx * block_N])
            T.tma_store_arrive()
            T.tma_store_wait(0)
    return C


@tilelang.jit
def started(A, B, block_M=64, block_N=64, block_K=32, dtype=T.float16):
    """Products that run on while the next stage is waited for; a stage is freed a round later."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    C = T.empty((M, N), T.float32)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
        A_shared = T.alloc_shared((2, block_M, block_K), dtype)
        B_shared = T.alloc_shared((2, block_N, block_K), dtype)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        full = T.alloc_barrier([128, 128])
        free = T.alloc_barrier([128, 128])

        with T.ws(0):
            for ko in T.serial(T.ceildiv(K, block_K)):
                T.barrier_wait(free[ko % 2], (ko // 2 + 1) % 2)
                T.tma_copy(
                    A[by * block_M : by * block_M + block_M, ko * block_K : ko * block_K + block_K],
                    A_shared[ko % 2, :, :],
                    barrier=full[ko % 2],
                )
                T.tma_copy(
                    B[bx * block_N : bx * block_N + block_N, ko * block_K : ko * block_K + block_K],
                    B_shared[ko % 2, :, :],
                    barrier=full[ko % 2],
                )
                T.barrier_arrive(full[ko % 2])
        with T.ws(1):
            for ko in T.serial(T.ceildiv(K, block_K)):
                T.barrier_wait(full[ko % 2], ko // 2 % 2)
                T.wgmma_gemm(
                    A_shared[ko % 2, :, :],
                    B_shared[ko % 2, :, :],
                    C_local,
                    transpose_B=True,
                    clear_accum=(ko == 0),
                )
                T.wait_wgmma(1)
                if ko > 0:
                    T.barrier_arrive(free[(ko + 1) % 2])
            T.wait_wgmma(0)
            T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@tilelang.jit
def attention(Q, K, V, block_M=64, block_N=64, dim=64, dtype=T.float16):
    """Softmax(Q K^T / sqrt(dim)) V for one head: a role that loads, one that multiplies."""
    M, N = T.const("M, N")
    Q: T.Tensor((M, dim), dtype)
    K: T.Tensor((N, dim), dtype)
    V: T.Tensor((N, dim), dtype)
    Output = T.empty((M, dim), dtype)
    scale = 1.44269504 / dim**0.5

    with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
        Q_shared = T.alloc_shared((block_M, dim), dtype)
        K_shared = T.alloc_shared((2, block_N, dim), dtype)
        V_shared = T.alloc_shared((2, block_N, dim), dtype)
        scores = T.alloc_fragment((block_M, block_N), T.float32)
        weights = T.alloc_fragment((block_M, block_N), dtype)
        total = T.alloc_fragment((block_M, dim), T.float32)
        largest = T.alloc_fragment((block_M,), T.float32)
        before = T.alloc_fragment((block_M,), T.float32)
        shrink = T.alloc_fragment((block_M,), T.float32)
        row_sum = T.alloc_fragment((block_M,), T.float32)
        sums = T.alloc_fragment((block_M,), T.float32)
        q_ready = T.alloc_barrier(128)
        k_ready = T.alloc_barrier([128, 128])
        v_ready = T.alloc_barrier([128, 128])
        free = T.alloc_barrier([128, 128])

        with T.ws(1):
            T.tma_copy(Q[bx * block_M : bx * block_M + block_M, :], Q_shared, barrier=q_ready)
            T.barrier_arrive(q_ready)
            for j in T.serial(T.ceildiv(N, block_N)):
                T.barrier_wait(free[j % 2], (j // 2 + 1) % 2)
                T.tma_copy(
                    K[j * block_N : j * block_N + block_N, :],
                    K_shared[j % 2, :, :],
                    barrier=k_ready[j % 2],
                )
                T.barrier_arrive(k_ready[j % 2])
                T.tma_copy(
                    V[j * block_N : j * block_N + block_N, :],
                    V_shared[j % 2, :, :],
                    barrier=v_ready[j % 2],
                )
                T.barrier_arrive(v_ready[j % 2])
        with T.ws(0):
            T.fill(total, 0)
            T.fill(sums, 0)
            T.fill(largest, -(2**30))
            T.barrier_wait(q_ready, 0)
            for j in T.serial(T.ceildiv(N, block_N)):
                T.barrier_wait(k_ready[j % 2], j // 2 % 2)
                T.wgmma_gemm(
                    Q_shared, K_shared[j % 2, :, :], scores, transpose_B=True, clear_accum=True
                )
                T.copy(largest, before)
                T.wait_wgmma(0)
                for i, n in T.Parallel(block_M, block_N):
                    scores[i, n] = T.if_then_else(j * block_N + n < N, scores[i, n], -(2**30))
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    shrink[i] = T.exp2((before[i] - largest[i]) * scale)
                for i, n in T.Parallel(block_M, block_N):
                    scores[i, n] = T.exp2((scores[i, n] - largest[i]) * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    sums[i] = sums[i] * shrink[i] + row_sum[i]
                for i, d in T.Parallel(block_M, dim):
                    total[i, d] *= shrink[i]
                T.copy(scores, weights)
                T.barrier_wait(v_ready[j % 2], j // 2 % 2)
                T.wgmma_gemm(weights, V_shared[j % 2, :, :], total)
                T.wait_wgmma(0)
                T.barrier_arrive(free[j % 2])
            for i, d in T.Parallel(block_M, dim):
                total[i, d] /= sums[i]
            T.copy(total, Output[bx * block_M : bx * block_M + block_M, :])
    return Output


@tilelang.jit
def relay(A, rows=8, columns=32, dtype=T.float32):
    """Two warpgroups that pass a tile to and fro by named barriers: one doubles it, one adds one."""
    M = T.const("M")
    A: T.Tensor((M, columns), dtype)
    B = T.empty((M, columns), dtype)

    with T.Kernel(1, threads=256):
        tile = T.alloc_shared((rows, columns), dtype)
        for step in T.serial(T.ceildiv(M, rows)):
            with T.ws(0):
                if step > 0:
                    T.sync_threads(2, 256)
                for i, j in T.Parallel(rows, columns):
                    tile[i, j] = A[step * rows + i, j] * 2
                T.named_barrier_arrive(1, 256)
            with T.ws(1):
                T.sync_threads(1, 256)
                for i, j in T.Parallel(rows, columns):
                    B[step * rows + i, j] = tile[rows - 1 - i, j] + 1
                if step < T.ceildiv(M, rows) - 1:
                    T.named_barrier_arrive(2, 256)
    return B


@tilelang.jit
def gathered(A, B, rows, block_M=64, block_N=64, block_K=64, dtype=T.float16):
    """C = A[rows] @ B.T: a warpgroup gathers rows element by element, which a barrier counts."""
    M, N, K, R = T.const("M, N, K, R")
    A: T.Tensor((R, K), dtype)
    B: T.Tensor((N, K), dtype)
    rows: T.Tensor((M,), T.int32)
    C = T.empty((M, N), T.float32)

    with T.Kernel(T.ceildiv(N, block_N), M // block_M, threads=256) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_N, block_K), dtype)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        ready = T.alloc_barrier(128)
        read = T.alloc_barrier(128)
        tx = T.get_thread_binding()

        if tx >= 128:
            for ko in T.serial(K // block_K):
                T.barrier_wait(read, (ko + 1) & 1)
                for r in T.serial(4):
                    row = r * 16 + (tx - 128) // 8
                    T.ptx_cp_async(
                        T.access_ptr(A_shared[row, (tx - 128) % 8 * 8], "w", 8),
                        T.access_ptr(
                            A[rows[by * block_M + row], ko * block_K + (tx - 128) % 8 * 8], "r", 8
                        ),
                        8,
                    )
                T.tma_copy(B[bx * block_N, ko * block_K], B_shared, barrier=ready)
                T.cp_async_barrier_noinc(ready)
        else:
            T.clear(C_local)
            for ko in T.serial(K // block_K):
                T.barrier_wait(ready, ko & 1)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
                T.barrier_arrive(read)
            T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@tilelang.jit
def clustered(A, block=64, dtype=T.float16):
    """Pairs of blocks that wait for each other between a load and a store by TMA."""
    M, N = T.const("M, N")
    A: T.Tensor((M, N), dtype)
    B = T.empty((M, N), dtype)

    with T.Kernel(
        T.ceildiv(N, block), T.ceildiv(M, block), threads=128, cluster_dims=(2, 1, 1)
    ) as (
        bx,
        by,
    ):
        tile = T.alloc_shared((block, block), dtype)
        ready = T.alloc_barrier(128)
        T.tma_copy(A[by * block, bx * block], tile, barrier=ready)
        T.barrier_arrive(ready)
        T.barrier_wait(ready, 0)
        T.cluster_sync()
        T.tma_copy(tile, B[by * block, bx * block])
        T.tma_store_arrive()
        T.tma_store_wait(0)
    return B


@tilelang.jit
def scaled(A, row_scale, block=20, columns=48, dtype=T.float16):
    """Tiles that no product reads: a vector and rows of any number come as they lie, and go so."""
    M, N = T.const("M, N")
    A: T.Tensor((M, N), dtype)
    row_scale: T.Tensor((N,), T.float32)
    B = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, columns), T.ceildiv(M, block), threads=64) as (bx, by):
        tile = T.alloc_shared((block, columns), dtype)
        scale = T.alloc_shared((columns,), T.float32)
        ready = T.alloc_barrier(64)
        T.tma_copy(A[by * block, bx * columns], tile, barrier=ready)
        T.tma_copy(row_scale[bx * columns], scale, barrier=ready)
        T.barrier_arrive(ready)
        T.barrier_wait(ready, 0)
        for i, j in T.Parallel(block, columns):
            tile[i, j] = tile[i, j] * scale[j]
        T.tma_copy(tile, B[by * block, bx * columns])
        T.tma_store_arrive()
        T.tma_store_wait(0)
    return B
