"""Bytes that are shifted and chosen between keep their range, with a sign and without one."""

import tilelang
import tilelang.language as T


@tilelang.jit
def bytes_computed(block_M=6, block_N=72):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "int8"),
        U: T.Tensor((M, N), "uint8"),
        Y: T.Tensor((M, N), "int8"),
        V: T.Tensor((M, N), "uint8"),
        Z: T.Tensor((M, N), "float32"),
        W: T.Tensor((M, 2 * N), "float16"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, block_N), threads=128) as (by, bx):
            x = T.alloc_fragment((block_M, block_N), "int8")
            u = T.alloc_fragment((block_M, block_N), "uint8")
            y = T.alloc_fragment((block_M, block_N), "int8")
            v = T.alloc_fragment((block_M, block_N), "uint8")
            z = T.alloc_fragment((block_M, block_N), "float32")
            w = T.alloc_fragment((block_M, 2 * block_N), "float16")

            T.copy(X[by * block_M, bx * block_N], x)
            T.copy(U[by * block_M, bx * block_N], u)
            for i, j in T.Parallel(block_M, block_N):
                low = (x[i, j] << 4) >> 4
                y[i, j] = T.if_then_else(low < 3, low << 5, x[i, j])
            for i, j in T.Parallel(block_M, block_N):
                v[i, j] = T.if_then_else(u[i, j] > 20, (u[i, j] << 3) >> 1, u[i, j] >> 2)
            for i, j in T.Parallel(block_M, block_N):
                z[i, j] = T.cast(x[i, j] >> 2, "float32") + T.cast(u[i, j] + u[i, j], "float32")
            # Two elements in a byte: each becomes a column of its own.
            for i, j in T.Parallel(block_M, 2 * block_N):
                both = x[i, j // 2]
                w[i, j] = T.cast(T.if_then_else(j % 2 == 0, (both << 4) >> 4, both >> 4), "float16")
            T.copy(y, Y[by * block_M, bx * block_N])
            T.copy(v, V[by * block_M, bx * block_N])
            T.copy(z, Z[by * block_M, bx * block_N])
            T.copy(w, W[by * block_M, bx * 2 * block_N])

    return main
