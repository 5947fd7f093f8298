import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-2, -1])
def quantize_int8(block_M=16, block_N=72, dtype="float16"):
    """Each stretch of a row as int8 numbers and the scale that they stand for."""
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        Q: T.Tensor((M, N), "int8"),
        scales: T.Tensor((M,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, block_N), "float32")
            q = T.alloc_fragment((block_M, block_N), "int8")
            most = T.alloc_fragment((block_M,), "float32")
            T.fill(most, 1e-4)
            for ko in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[bx * block_M, ko * block_N], x)
                T.reduce_absmax(x, most, dim=1, clear=False)
            for i in T.Parallel(block_M):
                most[i] = most[i] / 127
            T.copy(most, scales[bx * block_M])
            for ko in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[bx * block_M, ko * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    q[i, j] = T.cast(T.clamp(T.round(x[i, j] / most[i]), -127, 127), "int8")
                T.copy(q, Q[bx * block_M, ko * block_N])

    return main
