import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def functions(block_N=256, dtype="float32"):
    N = T.dynamic("N")

    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Z: T.Tensor((N,), "int32"), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bx:
            for i in T.Parallel(block_N):
                t = T.abs(X[bx * block_N + i])
                Y[bx * block_N + i] = (
                    T.exp2(-t)
                    + T.log(t + 1)
                    + T.sqrt(t) * T.rsqrt(t + 1)
                    - T.min(t, 0.5)
                    + 1 / (t + 2)
                    + T.sigmoid(t)
                    + T.cast(Z[bx * block_N + i] * 2 + 1, dtype)
                    + T.floor(t)
                    + T.log2(t + 1)
                    + t / 3
                )

    return main
