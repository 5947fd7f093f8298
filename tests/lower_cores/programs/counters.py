import tilelang
import tilelang.language as T


@tilelang.jit
def counters(block=8, width=24, late=False):
    """Blocks read where they are to look, and write where the next kernel is to look."""
    rows, count = T.dynamic("rows, count")

    @T.prim_func
    def main(
        X: T.Tensor((rows, width), "float32"),
        at: T.Tensor((count, 16), "int32"),
        Y: T.Tensor((count, block, width), "float32"),
    ):
        with T.Kernel(count) as b:
            tile = T.alloc_fragment((block, width), "float32")
            next_at = T.alloc_fragment((16,), "int32")
            start = at[b, 0]
            T.copy(at[b, 0:16], next_at)
            for i in T.Parallel(16):
                next_at[i] = next_at[i] + block
            T.copy(next_at, at[b, 0:16])
            if late:
                T.copy(X[at[b, 0] : at[b, 0] + block, 0:width], tile)
            else:
                T.copy(X[start : start + block, 0:width], tile)
            for i, j in T.Parallel(block, width):
                tile[i, j] = tile[i, j] * 2
            T.copy(tile, Y[b, 0:block, 0:width])

    return main
