"""Integers compared in every way, chosen between, and combined along rows of any width."""

import tilelang
import tilelang.language as T


@tilelang.jit
def integers_compared(block_M=24, block_N=40, wide=2100):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "int32"),
        S: T.Tensor((M, N), "int16"),
        B: T.Tensor((M, N), "int8"),
        V: T.Tensor((M, wide), "int32"),
        Y: T.Tensor((M, N), "int32"),
        Z: T.Tensor((M, N), "int16"),
        C: T.Tensor((M,), "int32"),
        D: T.Tensor((M,), "int16"),
        E: T.Tensor((M,), "int32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, block_N), "int32")
            y = T.alloc_fragment((block_M, block_N), "int32")
            s = T.alloc_fragment((block_M, block_N), "int16")
            z = T.alloc_fragment((block_M, block_N), "int16")
            b = T.alloc_fragment((block_M, block_N), "int8")
            v = T.alloc_fragment((block_M, wide), "int32")
            most = T.alloc_fragment((block_M,), "int32")
            least = T.alloc_fragment((block_M,), "int32")
            total = T.alloc_fragment((block_M,), "int32")
            shorts = T.alloc_fragment((block_M,), "int16")
            few = T.alloc_fragment((block_M,), "int16")
            wides = T.alloc_fragment((block_M,), "int32")

            T.clear(total)
            for ko in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx * block_M, ko * block_N], x)
                T.copy(S[bx * block_M, ko * block_N], s)
                T.copy(B[bx * block_M, ko * block_N], b)
                T.reduce_max(x, most, dim=1)
                T.reduce_min(x, least, dim=1)
                T.reduce_sum(x, total, dim=1, clear=False)
                T.reduce_max(s, shorts, dim=1)
                T.reduce_sum(s, few, dim=1)
                for i, j in T.Parallel(block_M, block_N):
                    y[i, j] = T.if_then_else(x[i, j] == most[i], 1, 0)
                for i, j in T.Parallel(block_M, block_N):
                    y[i, j] = T.if_then_else(x[i, j] != least[i], y[i, j], 1000000007)
                for i, j in T.Parallel(block_M, block_N):
                    y[i, j] = T.if_then_else(x[i, j] < 7, T.abs(x[i, j]) + j, y[i, j])
                for i, j in T.Parallel(block_M, block_N):
                    y[i, j] = T.if_then_else(x[i, j] >= y[i, j], y[i, j] * 3, y[i, j])
                for i, j in T.Parallel(block_M, block_N):
                    y[i, j] = T.if_then_else((x[i, j] <= j) & (x[i, j] > -40), y[i, j], x[i, j])
                for i, j in T.Parallel(block_M, block_N):
                    z[i, j] = T.if_then_else(s[i, j] > 3, s[i, j], shorts[i])
                for i, j in T.Parallel(block_M, block_N):
                    z[i, j] = T.if_then_else(b[i, j] < 0, z[i, j], few[i])
                T.copy(y, Y[bx * block_M, ko * block_N])
                T.copy(z, Z[bx * block_M, ko * block_N])
            for i in T.Parallel(block_M):
                C[bx * block_M + i] = total[i]
                D[bx * block_M + i] = shorts[i]
            T.copy(V[bx * block_M, 0], v)
            T.reduce_max(v, wides, dim=1)
            T.copy(wides, E[bx * block_M])

    return main
