import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def planes(B=3, block_M=4, block_N=24):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(
        X: T.Tensor((B, M, N), "float32"),
        Y: T.Tensor((B, M, N), "float32"),
        S: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            x = T.alloc_shared((B, block_M, block_N), "float32")
            s = T.alloc_fragment((block_M, block_N), "float32")
            T.copy(X[0:B, by * block_M : (by + 1) * block_M, bx * block_N : (bx + 1) * block_N], x)
            for b, i, j in T.Parallel(B, block_M, block_N):
                x[b, i, j] = x[b, i, j] * x[b, i, j]
            T.reduce_sum(x, s, dim=0)
            T.copy(x, Y[0:B, by * block_M : (by + 1) * block_M, bx * block_N : (bx + 1) * block_N])
            T.copy(s, S[by * block_M, bx * block_N])

    return main
