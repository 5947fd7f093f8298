import tilelang
import tilelang.language as T


@tilelang.jit
def shifted(block=16, width=40, dtype="float32"):
    """Rows from starts that only the tensor `starts` knows."""
    rows, count = T.dynamic("rows, count")

    @T.prim_func
    def main(
        X: T.Tensor((rows, width), dtype),
        starts: T.Tensor((count,), "int32"),
        Y: T.Tensor((rows, width), dtype),
    ):
        with T.Kernel(count) as b:
            tile = T.alloc_fragment((block, width), dtype)
            total = T.alloc_fragment((1, width), dtype)
            at = starts[b]
            T.copy(X[at : at + block, 0:width], tile)
            T.reduce_sum(tile, total, dim=0)
            for i, j in T.Parallel(block, width):
                tile[i, j] = tile[i, j] * 2 + total[0, j]
            T.copy(tile, Y[at : at + block, 0:width])

    return main
