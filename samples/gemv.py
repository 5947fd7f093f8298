"""Matrix times vector: every row of A is read once, so the speed is that of the memory.
A block owns block_M rows; products are summed by each thread, and across threads once at the end.

Run: tile2c samples/gemv.py -o out && tile2c run out --against samples/references.py:gemv
"""

import tilelang
import tilelang.language as T


@tilelang.jit
def gemv(
    A,
    x,
    block_M: int = 4,
    block_K: int = 1024,
    dtype: str = "float16",
    accum_dtype: str = "float32",
    threads: int = 128,
):
    """y = A @ x"""
    M, K = T.const("M, K")
    A: T.Tensor[[M, K], dtype]
    x: T.Tensor[[K], dtype]
    y = T.empty((M,), dtype)

    with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
        a = T.alloc_fragment((block_M, block_K), dtype)
        part = T.alloc_fragment((block_K,), dtype)
        products = T.alloc_fragment((block_M, block_K), accum_dtype)
        sums = T.alloc_fragment((block_M,), accum_dtype)

        T.clear(sums)
        for ko in T.serial(T.ceildiv(K, block_K)):
            # Past K both are zeros and add nothing.
            T.copy(A[bx * block_M, ko * block_K], a)
            T.copy(x[ko * block_K], part)
            for i, k in T.Parallel(block_M, block_K):
                products[i, k] = T.cast(a[i, k], accum_dtype) * T.cast(part[k], accum_dtype)
            T.reduce_sum(products, sums, dim=1, clear=False)
        T.copy(sums, y[bx * block_M])

    return y


def main():
    import torch

    for M, K in ((16384, 8192), (1000, 777)):
        a = torch.randn(M, K, device="cuda", dtype=torch.float16)
        x = torch.randn(K, device="cuda", dtype=torch.float16)
        torch.testing.assert_close(gemv(a, x), a @ x, rtol=1e-2, atol=1e-1)
    print("gemv: equal to torch")


if __name__ == "__main__":
    main()
