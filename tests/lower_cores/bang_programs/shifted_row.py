import tilelang
import tilelang.language as T


@tilelang.jit
def shifted_row(block=48, dtype="float32"):
    """Elements from starts that only the tensor `starts` knows."""
    length, count = T.dynamic("length, count")

    @T.prim_func
    def main(
        X: T.Tensor((length,), dtype),
        starts: T.Tensor((count,), "int32"),
        Y: T.Tensor((length,), dtype),
    ):
        with T.Kernel(count) as b:
            tile = T.alloc_fragment((block,), dtype)
            at = starts[b]
            T.copy(X[at : at + block], tile)
            for i in T.Parallel(block):
                tile[i] = tile[i] * 2
            T.copy(tile, Y[at : at + block])

    return main
