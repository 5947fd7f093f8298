import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def three_grids(block_M=4, block_N=40):
    B, M, N = T.dynamic("B, M, N")

    @T.prim_func
    def main(
        X: T.Tensor((B, M, N), "float16"),
        W: T.Tensor((B, N), "float16"),
        alpha: T.float32,
        Y: T.Tensor((B, M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), B, threads=128) as (bx, by, bz):
            for i, j in T.Parallel(block_M, block_N):
                Y[bz, by * block_M + i, bx * block_N + j] = (
                    X[bz, by * block_M + i, bx * block_N + j] * W[bz, bx * block_N + j] * alpha
                )

    return main
