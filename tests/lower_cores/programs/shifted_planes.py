import tilelang
import tilelang.language as T


@tilelang.jit
def shifted_planes(planes=3, block=4, width=24, dtype="float16"):
    """Boxes from starts that only the tensor `starts` knows."""
    depth, rows, count = T.dynamic("depth, rows, count")

    @T.prim_func
    def main(
        X: T.Tensor((depth, rows, width), dtype),
        starts: T.Tensor((count, 2), "int32"),
        Y: T.Tensor((count, planes, block, width), dtype),
    ):
        with T.Kernel(count) as b:
            tile = T.alloc_fragment((planes, block, width), dtype)
            z = starts[b, 0]
            y = starts[b, 1]
            T.copy(X[z : z + planes, y : y + block, 0:width], tile)
            for p, i, j in T.Parallel(planes, block, width):
                tile[p, i, j] = tile[p, i, j] * 2
            T.copy(tile, Y[b, 0:planes, 0:block, 0:width])

    return main
