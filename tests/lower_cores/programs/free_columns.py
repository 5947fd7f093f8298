import tilelang
import tilelang.language as T


@tilelang.jit
def free_columns(X, w, bm: int = 4):
    M, N = T.const("M, N")
    dt = T.float16
    X: T.Tensor[[M, N], dt]
    w: T.Tensor[[N], dt]
    Y = T.empty((M, N), dt)
    with T.Kernel(T.ceildiv(M, bm), threads=128) as b:
        # every column of the row
        for i, j in T.Parallel(bm, N):
            Y[b * bm + i, j] = X[b * bm + i, j] * w[j]
    return Y
