import tilelang
import tilelang.language as T


@tilelang.jit
def looked_up(block=8, width=16):
    rows, count = T.dynamic("rows, count")

    @T.prim_func
    def main(
        X: T.Tensor((rows, width), "float32"),
        n: T.Tensor((count,), "int32"),
        Y: T.Tensor((count, width), "float32"),
    ):
        with T.Kernel(count) as b:
            tile = T.alloc_fragment((width,), "float32")
            acc = T.alloc_fragment((width,), "float32")
            T.clear(acc)
            k = T.alloc_var("int32", 0)
            for r in T.serial(T.min(n[T.min(n[b], b)], 4)):
                T.copy(X[r, 0:width], tile)
                for j in T.Parallel(width):
                    acc[j] = acc[j] + tile[j] * T.cast(T.max(n[T.max(n[b], 0)], 2), "float32")
            while k < T.min(n[b], 3):
                for j in T.Parallel(width):
                    acc[j] = acc[j] + 1
                k = k + 1
            T.copy(acc, Y[b, 0:width])

    return main
