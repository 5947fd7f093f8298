import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def rows_of_a_tile(block_N=64):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 2), threads=128) as bx:
            x = T.alloc_shared((2, block_N), "float32")
            t = T.alloc_shared((block_N,), "float32")
            for ko in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx * 2, ko * block_N], x)
                for j in T.Parallel(block_N):
                    t[j] = x[0, j] - x[1, j]
                for j in T.Parallel(block_N):
                    x[0, j] = t[j]
                T.copy(t, x[1, :])
                T.copy(x, Y[bx * 2, ko * block_N])

    return main
