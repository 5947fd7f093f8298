# Activations in half precision times weights of 4 bits with a scale for each group of rows.
# A byte of B holds two weights that follow each other along K, the first one in its lower half.

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def int4_gemm(
    M,
    N,
    K,
    group_size=128,
    block_M=64,
    block_N=64,
    block_K=64,
    num_stages=3,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    """C = A @ W^T, where W[n, k] = (half k % 2 of B[n, k // 2]) * scales[k // group_size, n]"""
    assert group_size % block_K == 0, "a tile of K has one scale for each row of W"

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K // 2), "int8"),
        scales: T.Tensor((T.ceildiv(K, group_size), N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K // 2), "int8")
            scales_shared = T.alloc_shared((block_N,), dtype)
            W_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[bx * block_N, ko * (block_K // 2)], B_shared)
                T.copy(scales[ko * block_K // group_size, bx * block_N], scales_shared)
                for i, j in T.Parallel(block_N, block_K):
                    both = B_shared[i, j // 2]
                    # Shifted to the top and back, the lower half keeps its sign.
                    weight = T.if_then_else(j % 2 == 0, (both << 4) >> 4, both >> 4)
                    W_shared[i, j] = T.cast(weight, dtype) * scales_shared[i]
                T.gemm(A_shared, W_shared, C_local, transpose_B=True)

            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def main(group_size=128):
    import torch

    kernel = int4_gemm(*T.dynamic("M, N, K"))
    for M, N, K in ((16, 4096, 4096), (1000, 776, 1024)):
        a = torch.randn(M, K, device="cuda", dtype=torch.float16)
        b = torch.randint(-128, 128, (N, K // 2), device="cuda", dtype=torch.int8)
        scales = torch.rand(K // group_size, N, device="cuda", dtype=torch.float16)
        weights = torch.stack(((b << 4) >> 4, b >> 4), dim=-1).reshape(N, K).half()
        weights *= scales.repeat_interleave(group_size, dim=0).T
        torch.testing.assert_close(kernel(a, b, scales), a @ weights.T, rtol=1e-2, atol=1)
    print("int4_gemm: equal to torch")


if __name__ == "__main__":
    main()
