# Largest and smallest of rows, in the rows' own type.

import tilelang
import tilelang.language as T


@tilelang.jit
def extremes(M, N=256, block_M=4, threads=128, dtype="float16"):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        high: T.Tensor((M,), dtype),
        spread: T.Tensor((M,), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), dtype)
            top = T.alloc_fragment((block_M,), dtype)
            bottom = T.alloc_fragment((block_M,), dtype)
            T.copy(X[bx * block_M, 0], x)
            T.reduce_max(x, top, dim=1)
            T.reduce_min(x, bottom, dim=1)
            for i in T.Parallel(block_M):
                bottom[i] = top[i] - T.max(bottom[i], top[i] - T.exp(bottom[i]))
            T.copy(top, high[bx * block_M])
            T.copy(bottom, spread[bx * block_M])

    return main
