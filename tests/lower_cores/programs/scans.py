"""Running sums and largest so far: along every dimension, either way, of parts and of other types."""

import tilelang
import tilelang.language as T


@tilelang.jit
def scans(block_M=5, block_N=200, planes=3):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        H: T.Tensor((M, N), "float16"),
        I: T.Tensor((M, N), "int32"),
        P: T.Tensor((M, planes, N), "float32"),
        A: T.Tensor((M, N), "float32"),
        B: T.Tensor((M, N), "float32"),
        C: T.Tensor((M, N), "float16"),
        D: T.Tensor((M, N), "int32"),
        E: T.Tensor((M, planes, N), "float32"),
        F: T.Tensor((M, N), "float32"),
        G: T.Tensor((M, N), "bfloat16"),
        L: T.Tensor((N,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, block_N), threads=128) as (by, bx):
            x = T.alloc_fragment((block_M, block_N), "float32")
            h = T.alloc_fragment((block_M, block_N), "float16")
            i = T.alloc_fragment((block_M, block_N), "int32")
            p = T.alloc_fragment((block_M, planes, block_N), "float32")
            a = T.alloc_fragment((block_M, block_N), "float32")
            b = T.alloc_fragment((block_M, block_N), "float32")
            c = T.alloc_fragment((block_M, block_N), "float16")
            f = T.alloc_fragment((block_M, block_N), "float32")
            g = T.alloc_fragment((block_M, block_N), "bfloat16")
            line = T.alloc_fragment((block_N,), "float32")

            T.copy(X[by * block_M, bx * block_N], x)
            T.copy(H[by * block_M, bx * block_N], h)
            T.copy(I[by * block_M, bx * block_N], i)
            T.copy(P[by * block_M, 0, bx * block_N], p)
            T.cumsum(x, a, dim=1, reverse=True)
            T.copy(a, A[by * block_M, bx * block_N])
            T.cumsum(x, b, dim=0)
            T.copy(b, B[by * block_M, bx * block_N])
            T.cumsum(h, c, dim=1)
            T.copy(c, C[by * block_M, bx * block_N])
            T.cumsum(i, dim=1)
            T.copy(i, D[by * block_M, bx * block_N])
            T.cumsum(p, dim=1)
            T.copy(p, E[by * block_M, 0, bx * block_N])
            T.cummax(x, f, dim=1)
            for r, k in T.Parallel(block_M, block_N):
                f[r, k] = f[r, k] + b[r, k]
            T.copy(f, F[by * block_M, bx * block_N])
            T.copy(x, g)
            T.cumsum(g, dim=0, reverse=True)
            T.copy(g, G[by * block_M, bx * block_N])
            if by == 0:
                T.copy(X[0, bx * block_N], line)
                T.cumsum(line, dim=0)
                T.copy(line, L[bx * block_N])

    return main
