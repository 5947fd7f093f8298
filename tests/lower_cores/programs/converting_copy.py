import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def converting_copy(block_M=8, block_N=40):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_M, block_N), "float16")
            T.copy(X[by * block_M, bx * block_N], a)
            T.copy(a, Y[by * block_M, bx * block_N])

    return main
