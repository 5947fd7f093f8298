# A product with every choice open: operands as they are or transposed, tiles, threads, types.

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def product(
    M,
    N,
    K,
    transpose_A=False,
    transpose_B=False,
    block_M=64,
    block_N=64,
    block_K=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    out_dtype="float16",
    sums="float32",
):
    A_shape = (K, M) if transpose_A else (M, K)
    B_shape = (N, K) if transpose_B else (K, N)
    A_tile = (block_K, block_M) if transpose_A else (block_M, block_K)
    B_tile = (block_N, block_K) if transpose_B else (block_K, block_N)

    @T.prim_func
    def main(
        A: T.Tensor(A_shape, dtype),
        B: T.Tensor(B_shape, dtype),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared(A_tile, dtype)
            B_shared = T.alloc_shared(B_tile, dtype)
            C_local = T.alloc_fragment((block_M, block_N), sums)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if transpose_A:
                    T.copy(A[ko * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, ko * block_K], A_shared)
                if transpose_B:
                    T.copy(B[bx * block_N, ko * block_K], B_shared)
                else:
                    T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A, transpose_B)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main
