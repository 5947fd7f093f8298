import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-2, -1])
def repeated(block_M=8, N=64):
    M = T.dynamic("M")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        U: T.Tensor((M,), "float32"),
        Y: T.Tensor((M, N), "float32"),
        Z: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=64) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            mu = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.copy(U[bx * block_M], mu)
            for i, j in T.Parallel(block_M, N):
                Y[bx * block_M + i, j] = (x[i, j] - mu[i]) * (x[i, j] - mu[i])
            # the tile that is written is read in both factors, and beside them
            for i, j in T.Parallel(block_M, N):
                x[i, j] = (x[i, j] + mu[i]) * (x[i, j] + mu[i]) - T.sigmoid(x[i, j])
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.exp2(-(x[i, j] * 0.25)) + (2.0 * x[i, j] + mu[i]) * (
                    2.0 * x[i, j] + mu[i]
                )
            for i, j in T.Parallel(block_M, N):
                Z[bx * block_M + i, j] = T.exp(x[i, j] * -0.5) + T.tanh(x[i, j])

    return main
