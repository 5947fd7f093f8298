"""One product with everything free: types, majors, tiles, threads, policy."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def product(
    M,
    N,
    K,
    block_M=32,
    block_N=32,
    block_K=32,
    num_stages=2,
    threads=64,
    dtype="float16",
    sum_dtype="float32",
    trans_A=False,
    trans_B=False,
    policy="square",
):
    @T.prim_func
    def main(
        A: T.Tensor((K, M) if trans_A else (M, K), dtype),
        B: T.Tensor((N, K) if trans_B else (K, N), dtype),
        C: T.Tensor((M, N), sum_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_K, block_M) if trans_A else (block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K) if trans_B else (block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), sum_dtype)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if trans_A:
                    T.copy(A[ko * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, ko * block_K], A_shared)
                if trans_B:
                    T.copy(B[bx * block_N, ko * block_K], B_shared)
                else:
                    T.copy(B[ko * block_K, bx * block_N], B_shared)
                if policy == "full_row":
                    T.gemm(A_shared, B_shared, C_local, trans_A, trans_B, T.GemmWarpPolicy.FullRow)
                elif policy == "full_col":
                    T.gemm(A_shared, B_shared, C_local, trans_A, trans_B, T.GemmWarpPolicy.FullCol)
                else:
                    T.gemm(A_shared, B_shared, C_local, trans_A, trans_B)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main
