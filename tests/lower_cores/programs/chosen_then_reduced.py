import tilelang
import tilelang.language as T


@tilelang.jit
def chosen_then_reduced(N=1000, block_N=256, blocks=4):
    @T.prim_func
    def main(
        X: T.Tensor((N,), "float32"),
        Z: T.Tensor((N,), "float32"),
        C: T.Tensor((N,), "float32"),
        most: T.Tensor((blocks,), "float32"),
        least: T.Tensor((blocks,), "float32"),
    ):
        with T.Kernel(blocks, threads=64) as bx:
            x = T.alloc_fragment((block_N,), "float32")
            r = T.alloc_fragment((1,), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.copy(X[bx * block_N], x)
            # the choice and both reductions work in one intermediate tile
            for i in T.Parallel(block_N):
                C[bx * block_N + i] = T.if_then_else(
                    x[i] < Z[bx * block_N + i], x[i] * 2.0, x[i] * 0.5
                )
            T.reduce_max(x, r)
            T.reduce_min(x, s)
            most[bx] = r[0]
            least[bx] = s[0]

    return main
