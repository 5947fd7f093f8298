"""A product with an epilogue that only the vector cores can compute."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gelu(M, N, K, block_M=32, block_N=32, block_K=32, dtype="float16"):
    """C = gelu(A @ B + bias)"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        bias: T.Tensor((N,), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, ko * block_K], a)
                T.copy(B[ko * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(block_M, block_N):
                x = c[i, j] + bias[bx * block_N + j]
                c[i, j] = x / (1.0 + T.exp(-1.702 * x))
            T.copy(c, C[by * block_M, bx * block_N])

    return main
