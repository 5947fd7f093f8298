import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def dequantize(block_M=8, block_N=96):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "int8"), S: T.Tensor((M,), "float32"), Y: T.Tensor((M, N), "float16")
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                Y[by * block_M + i, bx * block_N + j] = (
                    T.cast(X[by * block_M + i, bx * block_N + j], "float32") * S[by * block_M + i]
                )

    return main
