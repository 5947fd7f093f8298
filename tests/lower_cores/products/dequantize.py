"""A product whose right operand the vector cores make: 8-bit weights times a factor for each row."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def dequantize(M, N, K, block_M=32, block_N=32, block_K=64, dtype="float16"):
    """C = A @ (W * scale[:, None])^T"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K), "int8"),
        scale: T.Tensor((N,), dtype),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_M, block_K), dtype)
            w = T.alloc_shared((block_N, block_K), "int8")
            factor = T.alloc_shared((block_N,), dtype)
            b = T.alloc_shared((block_N, block_K), dtype)
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            T.copy(scale[bx * block_N], factor)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, ko * block_K], a)
                T.copy(W[bx * block_N, ko * block_K], w)
                for i, j in T.Parallel(block_N, block_K):
                    b[i, j] = T.cast(w[i, j], dtype) * factor[i]
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * block_M, bx * block_N])

    return main
