import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def branches(block_M=4, block_N=64):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            x = T.alloc_shared((block_M, block_N), "float32")
            acc = T.alloc_var("float32")
            acc = 0.5
            if bx % 2 == 0:
                T.copy(X[by * block_M, bx * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    x[i, j] = -x[i, j]
            else:
                T.fill(x, 3)
            acc = acc + x[1, 2]
            for i, j in T.Parallel(block_M, block_N):
                x[i, j] = x[i, j] + acc
            T.copy(x, Y[by * block_M, bx * block_N])

    return main
