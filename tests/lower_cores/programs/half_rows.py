import tilelang
import tilelang.language as T


@tilelang.jit
def half_rows(block=8, width=48, dtype="float32"):
    """Tiles whose extents are arithmetic of constants."""
    rows = T.dynamic("rows")

    @T.prim_func
    def main(X: T.Tensor((rows, width), dtype), Y: T.Tensor((rows, width // 2), dtype)):
        with T.Kernel(T.ceildiv(rows, block)) as b:
            left = T.alloc_shared((block, width // 2), dtype)
            right = T.alloc_fragment((block, width - width // 2), dtype)
            T.copy(X[b * block : (b + 1) * block, 0 : width // 2], left)
            T.copy(X[b * block : (b + 1) * block, width // 2 : width], right)
            for i, j in T.Parallel(block, width // 2):
                left[i, j] = left[i, j] * right[i, j]
            T.copy(left, Y[b * block, 0])

    return main
