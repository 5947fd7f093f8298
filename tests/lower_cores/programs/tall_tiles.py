import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def tall_tiles(block_M=260, block_N=80):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            x = T.alloc_shared((block_M, block_N), "float32")
            m = T.alloc_fragment((block_M,), "float32")
            s = T.alloc_fragment((block_N,), "float32")
            T.copy(X[by * block_M, bx * block_N], x)
            T.reduce_max(x, m, dim=1)
            T.reduce_min(x, s, dim=0)
            for i, j in T.Parallel(block_M, block_N):
                x[i, j] = (m[i] - x[i, j]) * s[j] + m[i] * s[j]
            T.copy(x, Y[by * block_M, bx * block_N])

    return main
