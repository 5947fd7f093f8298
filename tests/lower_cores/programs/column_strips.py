import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def column_strips(block_N=32768):
    N = T.dynamic("N")

    @T.prim_func
    def main(
        X: T.Tensor((N,), "float32"), Z: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")
    ):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bx:
            for i in T.Parallel(block_N):
                Y[bx * block_N + i] = X[bx * block_N + i] * Z[bx * block_N + i] + T.cast(
                    i, "float32"
                )

    return main
