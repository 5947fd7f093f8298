import tilelang
import tilelang.language as T


@tilelang.jit
def nibbles(block=6, width=40, shift=4, dtype="int8", out_dtype="float32"):
    """Two numbers a byte: the upper and the lower half, and what a shift leaves of the whole."""
    rows = T.dynamic("rows")

    @T.prim_func
    def main(
        X: T.Tensor((rows, width), dtype),
        Y: T.Tensor((rows, width * 2), out_dtype),
        Z: T.Tensor((rows, width), dtype),
    ):
        with T.Kernel(T.ceildiv(rows, block)) as b:
            x = T.alloc_shared((block, width), dtype)
            y = T.alloc_fragment((block, width * 2), out_dtype)
            z = T.alloc_fragment((block, width), dtype)
            T.copy(X[b * block, 0], x)
            for i, j in T.Parallel(block, width * 2):
                byte = x[i, j // 2]
                if j % 2 == 0:
                    y[i, j] = T.cast((byte << shift) >> shift, out_dtype) + j
                else:
                    y[i, j] = T.cast(byte >> shift, out_dtype) - j // 2
            for i, j in T.Parallel(block, width):
                z[i, j] = x[i, j] << shift
            T.copy(y, Y[b * block, 0])
            T.copy(z, Z[b * block, 0])

    return main
