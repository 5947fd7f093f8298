import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def many_inputs(block_N=64):
    N = T.dynamic("N")

    @T.prim_func
    def main(
        A: T.Tensor((N,), "float32"),
        B: T.Tensor((N,), "float32"),
        C: T.Tensor((N,), "float32"),
        D: T.Tensor((N,), "float32"),
        E: T.Tensor((N,), "float32"),
        F: T.Tensor((N,), "float32"),
        G: T.Tensor((N,), "float32"),
        Y: T.Tensor((N,), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), threads=64) as bx:
            for i in T.Parallel(block_N):
                Y[bx * block_N + i] = (
                    A[bx * block_N + i]
                    + B[bx * block_N + i] * C[bx * block_N + i]
                    - D[bx * block_N + i]
                    + E[bx * block_N + i] * F[bx * block_N + i]
                    + G[bx * block_N + i]
                )

    return main
