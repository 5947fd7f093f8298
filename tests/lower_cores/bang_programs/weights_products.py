import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def weights_products(
    block_M=32, block_N=48, block_K=32, dtype="float16", transpose_A=False, transpose_B=False
):
    """Y = max(op(A) @ op(B) + bias, 0)"""
    M, N, K = T.dynamic("M, N, K")

    @T.prim_func
    def main(
        A: T.Tensor((K, M) if transpose_A else (M, K), dtype),
        B: T.Tensor((N, K) if transpose_B else (K, N), dtype),
        bias: T.Tensor((N,), "float32"),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_K, block_M) if transpose_A else (block_M, block_K), dtype)
            b = T.alloc_shared((block_N, block_K) if transpose_B else (block_K, block_N), dtype)
            y = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(y)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                if transpose_A:
                    T.copy(A[ko * block_K, by * block_M], a)
                else:
                    T.copy(A[by * block_M, ko * block_K], a)
                if transpose_B:
                    T.copy(B[bx * block_N, ko * block_K], b)
                else:
                    T.copy(B[ko * block_K, bx * block_N], b)
                T.gemm(a, b, y, transpose_A=transpose_A, transpose_B=transpose_B)
            for i, j in T.Parallel(block_M, block_N):
                y[i, j] = T.max(y[i, j] + bias[bx * block_N + j], 0)
            T.copy(y, Y[by * block_M, bx * block_N])

    return main
