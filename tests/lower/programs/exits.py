"""Products whose blocks may end, or leave a round, early; whose rows lie padded; that are scattered."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def ended(M, N, K, when="before", block_M=128, block_N=64, block_K=32, num_stages=2, threads=256):
    """C = A @ B in the blocks that do not end early, ones in the others

    `when`: "before" the rounds, in one, by a "break" or a "continue" of a round, or "after" them.
    """

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        last: T.Tensor((T.ceildiv(M, block_M),), "int32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            if when == "before":
                if last[by] < 0:
                    for i, j in T.Parallel(block_M, block_N):
                        C[by * block_M + i, bx * block_N + j] = 1
                    T.thread_return()
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if when == "break":
                    if ko > last[by]:
                        T.loop_break()
                if when == "continue":
                    if ko == last[by]:
                        continue
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            if when == "after":
                if last[by] < 0:
                    for i, j in T.Parallel(block_M, block_N):
                        C[by * block_M + i, bx * block_N + j] = 1
                    T.thread_return()
            for i, j in T.Parallel(block_M, block_N):
                C[by * block_M + i, bx * block_N + j] = C_local[i, j]

    return main


@tilelang.jit(out_idx=[-1])
def padded(M, N, K, block_M=128, block_N=64, block_K=32, num_stages=2, threads=256):
    """C = A @ B + bias of the row of tiles; rows are longer than what is multiplied"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K + 8), "float16"),
        B: T.Tensor((K, N), "float16"),
        bias: T.Tensor((T.ceildiv(M, block_M), N + 8), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] += bias[by, bx * block_N + j]
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit(out_idx=[-1])
def guarded(M, N, K, block_M=128, block_N=64, block_K=32, num_stages=2, threads=256):
    """C = A @ B + bias[j % (K // 64)], or + 2 where K is less than 64"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        bias: T.Tensor((N,), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] += T.if_then_else(
                    K >= 64, bias[(bx * block_N + j) % (K // 64)], T.float16(2)
                )
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit
def scattered(M, N, K, block_M=128, block_N=64, block_K=32, num_stages=2, threads=256):
    """C[place[i]] = (A @ B)[i] + bias"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        bias: T.Tensor((N,), "float16"),
        place: T.Tensor((M,), "int32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C[place[by * block_M + i], bx * block_N + j] = (
                    C_local[i, j] + bias[bx * block_N + j]
                )

    return main


@tilelang.jit
def in_two_types(M, N, K, block_M=128, block_N=64, block_K=32, num_stages=2, threads=256):
    """C = A @ B; D = max(A @ B, 0) in another type of 16 bits"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
        D: T.Tensor((M, N), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j], 0)
            T.copy(C_local, D[by * block_M, bx * block_N])

    return main
