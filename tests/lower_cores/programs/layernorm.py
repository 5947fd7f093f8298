import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def layernorm(N, block_M=4, dtype="float16"):
    M = T.dynamic("M")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        W: T.Tensor((N,), "float32"),
        B: T.Tensor((N,), "float32"),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            xs = T.alloc_shared((block_M, N), dtype)
            x = T.alloc_fragment((block_M, N), "float32")
            c = T.alloc_fragment((block_M, N), "float32")
            mean = T.alloc_fragment((block_M,), "float32")
            var = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M : (bx + 1) * block_M, :], xs)
            T.copy(xs, x)
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(block_M):
                mean[i] = mean[i] / N
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] - mean[i]
                c[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(c, var, dim=1)
            for i in T.Parallel(block_M):
                var[i] = 1.0 / T.sqrt(var[i] / N + 1e-5)
            for i, j in T.Parallel(block_M, N):
                Y[bx * block_M + i, j] = x[i, j] * var[i] * W[j] + B[j]

    return main
