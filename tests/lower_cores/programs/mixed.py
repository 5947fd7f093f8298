import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def mixed(block_N=128, dtype="float16"):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), n: T.int32, Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=128) as by:
            x = T.alloc_fragment((1, block_N), dtype)
            mx = T.alloc_fragment((1,), "float32")
            xf = T.alloc_fragment((1, block_N), "float32")
            T.fill(mx, -T.infinity("float32"))
            for ko in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[by, ko * block_N], x)
                T.copy(x, xf)
                T.reduce_max(xf, mx, dim=1, clear=False)
            for ko in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[by, ko * block_N], x)
                for i, j in T.Parallel(1, block_N):
                    xf[i, j] = T.if_then_else(n > 2, x[i, j] - mx[0], mx[0])
                for i, j in T.Parallel(1, block_N):
                    if ko * block_N + j == 5:
                        xf[i, j] = 100
                    xf[i, j] = T.Select(xf[i, j] < -1, T.max(xf[i, j], -3), xf[i, j] / mx[0])
                T.copy(xf, Y[by, ko * block_N])

    return main
