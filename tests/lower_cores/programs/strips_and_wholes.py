import tilelang
import tilelang.language as T


@tilelang.jit
def strips_and_wholes(block_M=128, block_N=512, sums=False):
    """X's tiles are cut by rows, Z's are not: strips past the end store none of Y."""
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        Z: T.Tensor((M, 16), "float32"),
        Y: T.Tensor((M, N), "float32"),
        W: T.Tensor((M, 16), "float32"),
        S: T.Tensor((128, 16), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as by:
            x = T.alloc_shared((block_M, block_N), "float32")
            m = T.alloc_fragment((block_M,), "float32")
            z = T.alloc_shared((block_M, 16), "float32")
            T.fill(m, -100)
            T.copy(X[by * block_M, 0], x)
            T.reduce_max(x, m, dim=1, clear=False)
            for i, j in T.Parallel(block_M, block_N):
                x[i, j] = x[i, j] - m[i]
            T.copy(x, Y[by * block_M, 0])
            T.copy(Z[by * block_M, 0], z)
            T.copy(z, W[by * block_M, 0])
            if sums:  # once a strip would be too often
                T.atomic_add(S, z)

    return main
