import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def conditions(block_M=16, block_N=32):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            x = T.alloc_shared((block_M, block_N), "float16")
            T.copy(X[by * block_M, bx * block_N], x)
            for i, j in T.Parallel(block_M, block_N):
                if by * block_M + i >= bx * block_N + j and x[i, j] > 0:
                    x[i, j] = x[i, j] * x[i, j]
                else:
                    x[i, j] = -1
            T.copy(x, Y[by * block_M, bx * block_N])

    return main
