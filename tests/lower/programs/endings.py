"""Products whose sums are finished with elements of other tensors."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def finished(
    M,
    N,
    K,
    block_M=128,
    block_N=128,
    block_K=64,
    num_stages=2,
    threads=256,
    bias_dtype="float16",
    out_dtype="float16",
    from_index=False,
    filled=False,
):
    """C = max(A @ B * scale + bias, 0): a scale for each row, a bias for each column (or the index's)

    With `filled` the sums start at the scale of their row.
    """

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        scale: T.Tensor((M,), "float32"),
        bias: T.Tensor((N,), bias_dtype),
        column: T.Tensor((N,), "int32"),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            if filled:
                for i, j in T.Parallel(block_M, block_N):
                    C_local[i, j] = scale[by * block_M + i]
            else:
                T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                if from_index:
                    C_local[i, j] = T.max(
                        C_local[i, j] * scale[by * block_M + i] + bias[column[bx * block_N + j]], 0
                    )
                else:
                    C_local[i, j] = T.max(
                        C_local[i, j] * scale[by * block_M + i] + bias[bx * block_N + j], 0
                    )
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit(out_idx=[-1])
def residual(M, N, K, block_M=128, block_N=64, block_K=64, num_stages=2, threads=256):
    """C = A @ B + R + own[j], where own, the number of the tile, is written by the launch itself"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        R: T.Tensor((M, N), "float16"),
        own: T.Tensor((N,), "float32"),
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
            for j in T.Parallel(block_N):
                own[bx * block_N + j] = bx
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = C_local[i, j] + R[by * block_M + i, bx * block_N + j]
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = C_local[i, j] + own[bx * block_N + j]
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit(out_idx=[-1])
def bounded(
    M,
    N,
    K,
    block_M=128,
    block_N=64,
    block_K=64,
    num_stages=2,
    threads=256,
    dtype="float16",
    low=0,
    high=6.0,
    kept=False,
):
    """C = min(max(A @ B, low), high); with `kept` the bounded sums are read once more"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        D: T.Tensor((M, N), "float32"),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.min(T.max(C_local[i, j], low), high)
            T.copy(C_local, C[by * block_M, bx * block_N])
            if kept:
                T.copy(C_local, D[by * block_M, bx * block_N])

    return main
