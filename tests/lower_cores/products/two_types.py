"""Two products of different element types, one after the other in the same tiles of the cube."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-2, -1])
def two_types(M, N, K, block_M=32, block_N=32, block_K=64):
    """C = A @ B, D = X @ Y"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        X: T.Tensor((M, K), "bfloat16"),
        Y: T.Tensor((K, N), "bfloat16"),
        C: T.Tensor((M, N), "float32"),
        D: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_M, block_K), "float16")
            b = T.alloc_shared((block_K, block_N), "float16")
            x = T.alloc_shared((block_M, block_K), "bfloat16")
            y = T.alloc_shared((block_K, block_N), "bfloat16")
            c = T.alloc_fragment((block_M, block_N), "float32")
            d = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, ko * block_K], a)
                T.copy(B[ko * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block_M, bx * block_N])
            T.clear(d)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(X[by * block_M, ko * block_K], x)
                T.copy(Y[ko * block_K, bx * block_N], y)
                T.gemm(x, y, d)
            T.copy(d, D[by * block_M, bx * block_N])

    return main
