"""Sums that go out through a shared tile of the tensor's type, and a bias that comes through one."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def staged(M, N, K, block_M=64, block_N=32, block_K=32, transpose_A=False, dtype="float16"):
    """C = A @ B + bias, and the part of it above 0"""

    @T.prim_func
    def main(
        A: T.Tensor((K, M) if transpose_A else (M, K), dtype),
        B: T.Tensor((K, N), dtype),
        bias: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_K, block_M) if transpose_A else (block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            row = T.alloc_fragment((block_N,), "float32")
            out = T.alloc_shared((block_M, block_N), dtype)
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            T.copy(bias[bx * block_N], row)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                if transpose_A:
                    T.copy(A[ko * block_K, by * block_M], a)
                else:
                    T.copy(A[by * block_M, ko * block_K], a)
                T.copy(B[ko * block_K, bx * block_N], b)
                T.gemm(a, b, c, transpose_A=transpose_A)
            for i, j in T.Parallel(block_M, block_N):
                c[i, j] = c[i, j] + row[j]
            for i, j in T.Parallel(block_M, block_N):
                c[i, j] = T.if_then_else(c[i, j] > 0, c[i, j], 0)
            T.copy(c, out)
            T.copy(out, C[by * block_M, bx * block_N])

    return main
