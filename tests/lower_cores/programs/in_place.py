import tilelang
import tilelang.language as T


@tilelang.jit
def in_place(block_N=256):
    N = T.dynamic("N")

    @T.prim_func
    def main(X: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bx:
            for i in T.Parallel(block_N):
                X[bx * block_N + i] = X[bx * block_N + i] * 2 + 1

    return main
