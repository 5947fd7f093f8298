import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def four_inputs(block_M=8, block_N=32):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float32"),
        B: T.Tensor((M, N), "float32"),
        C: T.Tensor((M, N), "float32"),
        D: T.Tensor((M, N), "float32"),
        Y: T.Tensor((M,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=64) as bx:
            a = T.alloc_shared((block_M, block_N), "float32")
            b = T.alloc_shared((block_M, block_N), "float32")
            c = T.alloc_shared((block_M, block_N), "float32")
            d = T.alloc_shared((block_M, block_N), "float32")
            t = T.alloc_fragment((block_M, block_N), "float32")
            s = T.alloc_fragment((block_M,), "float32")
            T.clear(s)
            for ko in T.Pipelined(T.ceildiv(N, block_N), num_stages=3):
                T.copy(A[bx * block_M, ko * block_N], a)
                T.copy(B[bx * block_M, ko * block_N], b)
                T.copy(C[bx * block_M, ko * block_N], c)
                T.copy(D[bx * block_M, ko * block_N], d)
                for i, j in T.Parallel(block_M, block_N):
                    d[i, j] = d[i, j] * 2
                for i, j in T.Parallel(block_M, block_N):
                    t[i, j] = a[i, j] + b[i, j] * c[i, j] - d[i, j]
                T.reduce_sum(t, s, dim=1, clear=False)
            T.copy(s, Y[bx * block_M])

    return main
