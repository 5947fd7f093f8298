import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def limits_read(block_M=32, N=64):
    M = T.dynamic("M")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        L: T.Tensor((8,), "int32"),
        Y: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            first = T.alloc_shared((block_M, N), "float32")
            second = T.alloc_shared((block_M, N), "float32")
            T.copy(X[bx * block_M, 0], first)
            for i, j in T.Parallel(block_M, N):
                if i >= L[bx]:
                    first[i, j] = 0.0
            T.copy(X[bx * block_M, 0], second)
            for i, j in T.Parallel(block_M, N):
                if j >= L[bx + 1] + 30:
                    second[i, j] = 0.0
            for i, j in T.Parallel(block_M, N):
                first[i, j] = first[i, j] + second[i, j]
            T.copy(first, Y[bx * block_M, 0])

    return main
