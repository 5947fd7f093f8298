import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def column_sums(block_M=16, block_N=40):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bx:
            x = T.alloc_shared((block_M, block_N), "float16")
            acc = T.alloc_fragment((block_N,), "float32")
            T.clear(acc)
            for ko in T.serial(T.ceildiv(M, block_M)):
                T.copy(X[ko * block_M, bx * block_N], x)
                T.reduce_sum(x, acc, dim=0, clear=False)
            T.copy(acc, Y[bx * block_N])

    return main
