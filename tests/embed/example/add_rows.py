import tilelang.language as T

M = T.dynamic("M")
N = T.dynamic("N")


@T.prim_func
def add_rows(
    X: T.Tensor((M, N), "float32"), row: T.Tensor((N,), "float32"), Y: T.Tensor((M, N), "float32")
):
    """Adds one row to each."""
    T.assume(N > 0)
    with T.Kernel(T.ceildiv(N, 256), M, threads=128) as (bx, by):
        for j in T.Parallel(256):
            if bx * 256 + j < N:
                Y[by, bx * 256 + j] = X[by, bx * 256 + j] + row[bx * 256 + j]
