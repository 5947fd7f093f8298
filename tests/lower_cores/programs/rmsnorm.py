import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def rmsnorm(N, block_M=8, dtype="bfloat16"):
    M = T.dynamic("M")

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            w = T.alloc_fragment((N,), "float32")
            sq = T.alloc_fragment((block_M, N), "float32")
            s = T.alloc_fragment((block_M, 1), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.copy(W, w)
            for i, j in T.Parallel(block_M, N):
                sq[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(sq, s, dim=1)
            for i in T.Parallel(block_M):
                s[i, 0] = T.rsqrt(s[i, 0] / N + 1e-6)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * s[i, 0] * w[j]
            T.copy(x, Y[bx * block_M, 0])

    return main
