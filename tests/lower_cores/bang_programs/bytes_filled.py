import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-2, -1])
def bytes_filled(block_N=128):
    N = T.dynamic("N")

    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "int8"), Z: T.Tensor((N,), "uint8")):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bx:
            one = T.alloc_fragment((1,), "int8")
            x = T.alloc_fragment((block_N,), "float32")
            T.copy(X[bx * block_N], x)
            for i in T.Parallel(1):
                one[i] = 7
            for i in T.Parallel(block_N):
                Z[bx * block_N + i] = 200
            for i in T.Parallel(block_N):
                Y[bx * block_N + i] = one[0]

    return main
