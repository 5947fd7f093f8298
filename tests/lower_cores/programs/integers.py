import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def integers(block_N=256):
    N = T.dynamic("N")

    @T.prim_func
    def main(X: T.Tensor((N,), "int32"), k: T.int32, Y: T.Tensor((N,), "int32")):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bx:
            for i in T.Parallel(block_N):
                Y[bx * block_N + i] = T.max(X[bx * block_N + i] * k - 7, bx * block_N + i)

    return main
