import tilelang
import tilelang.language as T


@tilelang.jit
def reshaped(block=24, width=12, dtype="float32"):
    """The same tensors as rows and as one row."""
    rows = T.dynamic("rows")

    @T.prim_func
    def main(X: T.Tensor((rows, width), dtype), Y: T.Tensor((rows, width), dtype)):
        with T.Kernel(T.ceildiv(rows * width, block)) as b:
            flat = T.reshape(X, (rows * width,))
            out = T.reshape(Y, (rows * width,))
            tile = T.alloc_fragment((block,), dtype)
            first = T.alloc_fragment((width,), dtype)
            T.copy(X[0, 0:width], first)
            T.copy(flat[b * block : b * block + block], tile)
            for i in T.Parallel(block):
                tile[i] = tile[i] * 2 + first[0]
            T.copy(tile, out[b * block : b * block + block])

    return main
