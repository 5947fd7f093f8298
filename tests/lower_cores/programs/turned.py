"""Tiles that a loop reads, or writes, along their columns: whole ones and parts of them."""

import tilelang
import tilelang.language as T


@tilelang.jit
def turned(block_M=20, block_N=36, dtype="float16"):
    """Y = (X + row numbers)^T; Z = X^T by parts; W = 2 V with its first and last exchanged."""
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        V: T.Tensor((M, 3, N), dtype),
        Y: T.Tensor((N, M), dtype),
        Z: T.Tensor((N, M), dtype),
        W: T.Tensor((N, 3, M), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            x = T.alloc_shared((block_M, block_N), dtype)
            y = T.alloc_fragment((block_N, block_M), dtype)
            z = T.alloc_fragment((block_N, block_M), dtype)
            v = T.alloc_shared((block_M, 3, block_N), dtype)
            w = T.alloc_shared((block_N, 3, block_M), dtype)

            T.copy(X[by * block_M, bx * block_N], x)
            # Written along columns, by a value of more than one type.
            for i, j in T.Parallel(block_M, block_N):
                y[j, i] = T.cast(x[i, j], "float32") + i
            T.copy(y, Y[bx * block_N, by * block_M])

            # A part read along its columns, a part written along them, and a row between them.
            T.clear(z)
            for j, i in T.Parallel(16, block_M):
                z[j, i] = x[i, j]
            for i, j in T.Parallel(block_M, block_N - 16):
                z[j + 16, i] = x[i, j + 16]
            T.copy(z, Z[bx * block_N, by * block_M])

            # Three dimensions: one stays where it is.
            T.copy(V[by * block_M, 0, bx * block_N], v)
            for k, j, i in T.Parallel(3, block_N, block_M):
                w[j, k, i] = v[i, k, j] * 2
            T.copy(w, W[bx * block_N, 0, by * block_M])

    return main
