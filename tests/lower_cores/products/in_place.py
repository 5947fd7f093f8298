"""A tensor that is multiplied, overwritten and multiplied again, and converted on its way in."""

import tilelang
import tilelang.language as T


@tilelang.jit
def in_place(block=32, dtype="bfloat16"):
    M = T.dynamic("M")

    @T.prim_func
    def main(
        A: T.Tensor((M, block), dtype),
        W: T.Tensor((block, block), "float32"),
        C: T.Tensor((M, block), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            a = T.alloc_shared((block, block), dtype)
            w = T.alloc_shared((block, block), dtype)
            c = T.alloc_fragment((block, block), "float32")
            T.copy(W, w)
            for _ in T.serial(2):
                T.copy(A[bx * block, 0], a)
                T.gemm(a, w, c, clear_accum=True)
                T.copy(c, A[bx * block, 0])
            T.copy(A[bx * block, 0], a)
            T.gemm(a, a, c, transpose_B=True, clear_accum=True)
            T.copy(c, C[bx * block, 0])

    return main
