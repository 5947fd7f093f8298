import tilelang
import tilelang.language as T


@tilelang.jit
def shifted_product(
    block=32, N=24, K=40, dtype="float16", accum_dtype="float32", out_dtype="float16"
):
    """Rows of a product from starts that only the tensor `starts` knows."""
    rows, count = T.dynamic("rows, count")

    @T.prim_func
    def main(
        A: T.Tensor((rows, K), dtype),
        B: T.Tensor((count, K, N), dtype),
        starts: T.Tensor((count,), "int32"),
        C: T.Tensor((rows, N), out_dtype),
    ):
        with T.Kernel(count) as b:
            A_shared = T.alloc_shared((block, K), dtype)
            B_shared = T.alloc_shared((K, N), dtype)
            C_local = T.alloc_fragment((block, N), accum_dtype)
            at = starts[b]
            T.clear(C_local)
            T.copy(A[at : at + block, 0:K], A_shared)
            T.copy(B[b, 0:K, 0:N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[at : at + block, 0:N])

    return main
