import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def guarded_stores(block_M=8, block_N=64):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                row = by * block_M + i
                col = bx * block_N + j
                if row < M and col < N:
                    Y[row, col] = T.if_then_else(X[row, col] > 0.5, X[row, col], X[row, col] * 0.25)

    return main
