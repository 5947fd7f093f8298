# One linear layer: matrix product, bias and ReLU in a single kernel.

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_bias_relu(
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
    """C = relu(A @ B + bias)"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        bias: T.Tensor((N,), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)

            # Bias and activation are applied while the sums are still in registers.
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j] + bias[bx * block_N + j], 0)

            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def main():
    import torch

    kernel = gemm_bias_relu(T.dynamic("M"), T.dynamic("N"), T.dynamic("K"))
    for M, N, K in ((4096, 4096, 4096), (1000, 1024, 776)):
        a = torch.randn(M, K, device="cuda", dtype=torch.float16)
        b = torch.randn(K, N, device="cuda", dtype=torch.float16)
        bias = torch.randn(N, device="cuda", dtype=torch.float16)
        expected = torch.relu(a @ b + bias)
        torch.testing.assert_close(kernel(a, b, bias), expected, rtol=1e-2, atol=1e-2)
    print("gemm_bias_relu: equal to torch")


if __name__ == "__main__":
    main()
