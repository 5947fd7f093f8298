import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def bias_and_scale(block_M=32, block_N=100):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        b: T.Tensor((N,), "float32"),
        s: T.Tensor((M,), "float32"),
        Y: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as by:
            for bx in T.serial(T.ceildiv(N, block_N)):
                for i, j in T.Parallel(block_M, block_N):
                    Y[by * block_M + i, bx * block_N + j] = (
                        X[by * block_M + i, bx * block_N + j] + b[bx * block_N + j]
                    ) / s[by * block_M + i] - s[by * block_M + i]

    return main
