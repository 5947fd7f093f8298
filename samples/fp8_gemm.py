# Matrix product of 8-bit floats, summed in float32. Both operands lie along K, as tensor cores for 8-bit
# types want them: B is given transposed.

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def fp8_gemm(
    M,
    N,
    K,
    block_M=128,
    block_N=128,
    block_K=128,
    num_stages=3,
    threads=256,
    dtype="float8_e4m3fn",
    out_dtype="float16",
    accum_dtype="float32",
):
    """C = A @ B^T"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            # Neighbouring blocks share rows of A and of B while these are in the cache.
            T.use_swizzle(panel_size=10)

            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[bx * block_N, ko * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)

            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def main():
    import torch

    kernel = fp8_gemm(T.dynamic("M"), T.dynamic("N"), T.dynamic("K"))
    for M, N, K in ((4096, 4096, 4096), (1000, 1040, 784)):
        a = torch.randn(M, K, device="cuda").to(torch.float8_e4m3fn)
        b = torch.randn(N, K, device="cuda").to(torch.float8_e4m3fn)
        expected = (a.float() @ b.float().T).half()
        torch.testing.assert_close(kernel(a, b), expected, rtol=1e-2, atol=1e-1)
    print("fp8_gemm: equal to torch")


if __name__ == "__main__":
    main()
