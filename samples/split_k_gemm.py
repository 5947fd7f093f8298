# Matrix product for few rows and columns and a long K: several blocks share the work on one tile of C,
# each for a part of K, and add up what they have in float32, in any order.

import tilelang
import tilelang.language as T


@tilelang.jit
def split_k_gemm(
    A,
    B,
    C,
    split_k: int = 8,
    block_M: int = 128,
    block_N: int = 128,
    block_K: int = 32,
    num_stages: int = 3,
    threads: int = 128,
    dtype: str = "float16",
    accum_dtype: str = "float32",
):
    """C += A @ B, where the caller has cleared C."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], dtype]
    B: T.Tensor[[K, N], dtype]
    C: T.Tensor[[M, N], accum_dtype]

    grid = T.ceildiv(N, block_N), T.ceildiv(M, block_M), split_k
    with T.Kernel(*grid, threads=threads) as (bx, by, bz):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

        # Each split takes whole tiles of K: the last one may find fewer, or none.
        tiles = T.ceildiv(T.ceildiv(K, block_K), split_k)
        T.clear(C_local)
        for ko in T.Pipelined(tiles, num_stages=num_stages):
            k = (bz * tiles + ko) * block_K
            T.copy(A[by * block_M, k], A_shared)
            T.copy(B[k, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)

        T.atomic_add(C[by * block_M, bx * block_N], C_local)


def main():
    import torch

    for M, N, K in ((256, 256, 16384), (100, 200, 5000)):
        a = torch.randn(M, K, device="cuda", dtype=torch.float16)
        b = torch.randn(K, N, device="cuda", dtype=torch.float16)
        c = torch.zeros(M, N, device="cuda")
        split_k_gemm(a, b, c)
        torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-2, atol=1e-1)
    print("split_k_gemm: equal to torch")


if __name__ == "__main__":
    main()
