# A product for each member of a batch, all sizes known only at run time.

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def batched_gemm(
    batch,
    M,
    N,
    K,
    block_M=128,
    block_N=128,
    block_K=32,
    num_stages=3,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    """C[b] = A[b] @ B[b]"""

    @T.prim_func
    def main(
        A: T.Tensor((batch, M, K), dtype),
        B: T.Tensor((batch, K, N), dtype),
        C: T.Tensor((batch, M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), batch, threads=threads) as (
            bx,
            by,
            bz,
        ):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[bz, by * block_M, ko * block_K], A_shared)
                T.copy(B[bz, ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)

            T.copy(C_local, C[bz, by * block_M, bx * block_N])

    return main


def main():
    import torch

    kernel = batched_gemm(*T.dynamic("batch, M, N, K"))
    for batch, M, N, K in ((16, 1024, 1024, 1024), (3, 1000, 776, 136)):
        a = torch.randn(batch, M, K, device="cuda", dtype=torch.float16)
        b = torch.randn(batch, K, N, device="cuda", dtype=torch.float16)
        torch.testing.assert_close(kernel(a, b), a @ b, rtol=1e-2, atol=1e-2)
    print("batched_gemm: equal to torch")


if __name__ == "__main__":
    main()
