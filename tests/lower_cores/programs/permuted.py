"""Three dimensions in every order."""

import tilelang
import tilelang.language as T


@tilelang.jit
def permuted(A=5, B=20, C=33, dtype="float16"):
    @T.prim_func
    def main(
        X: T.Tensor((A, B, C), dtype),
        Y: T.Tensor((C, A, B), dtype),
        Z: T.Tensor((B, C, A), dtype),
        U: T.Tensor((C, B, A), dtype),
        V: T.Tensor((B, A, C), dtype),
        W: T.Tensor((A, C, B), dtype),
    ):
        with T.Kernel(1, threads=128):
            x = T.alloc_shared((A, B, C), dtype)
            y = T.alloc_shared((C, A, B), dtype)
            z = T.alloc_shared((B, C, A), dtype)
            u = T.alloc_shared((C, B, A), dtype)
            v = T.alloc_shared((B, A, C), dtype)
            w = T.alloc_shared((A, C, B), dtype)
            T.copy(X, x)
            for k, i, j in T.Parallel(C, A, B):
                y[k, i, j] = x[i, j, k]
            for j, k, i in T.Parallel(B, C, A):
                z[j, k, i] = x[i, j, k] * 2
            for i, j, k in T.Parallel(A, B, C):
                u[k, j, i] = x[i, j, k]
            for i, j, k in T.Parallel(A, B, C):
                v[j, i, k] = x[i, j, k]
            for i, j, k in T.Parallel(A, B, C):
                w[i, k, j] = x[i, j, k] + 1
            T.copy(y, Y)
            T.copy(z, Z)
            T.copy(u, U)
            T.copy(v, V)
            T.copy(w, W)

    return main
