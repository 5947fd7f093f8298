"""A product with every choice of element types, orders of the operands and tile sizes."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul(
    M,
    N,
    K,
    block_M=32,
    block_N=48,
    block_K=64,
    transpose_A=False,
    transpose_B=False,
    num_stages=2,
    dtype="float16",
    accum_dtype="float32",
    out_dtype="float32",
):
    """C = A @ B"""

    @T.prim_func
    def main(
        A: T.Tensor((K, M) if transpose_A else (M, K), dtype),
        B: T.Tensor((N, K) if transpose_B else (K, N), dtype),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_K, block_M) if transpose_A else (block_M, block_K), dtype)
            b = T.alloc_shared((block_N, block_K) if transpose_B else (block_K, block_N), dtype)
            c = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if transpose_A:
                    T.copy(A[ko * block_K, by * block_M], a)
                else:
                    T.copy(A[by * block_M, ko * block_K], a)
                if transpose_B:
                    T.copy(B[bx * block_N, ko * block_K], b)
                else:
                    T.copy(B[ko * block_K, bx * block_N], b)
                T.gemm(a, b, c, transpose_A=transpose_A, transpose_B=transpose_B)
            T.copy(c, C[by * block_M, bx * block_N])

    return main
