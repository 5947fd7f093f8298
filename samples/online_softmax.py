"""Softmax over rows of any length: the row is read in tiles, and the running sum is scaled down
whenever a tile brings a larger element.

Run: tile2c samples/online_softmax.py -o out &&
     tile2c run out --against samples/references.py:online_softmax
"""

import tilelang
import tilelang.language as T

LOG2_E = 1.44269504  # exp(x) = exp2(x * LOG2_E)


@tilelang.jit
def online_softmax(
    X,
    block_M: int = 4,
    block_N: int = 1024,
    dtype: str = "float16",
    accum_dtype: str = "float32",
    threads: int = 128,
):
    """Y[i, :] = softmax(X[i, :]), numerically stable, in two passes over the row."""
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], dtype]
    Y = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
        x = T.alloc_fragment((block_M, block_N), accum_dtype)
        largest = T.alloc_fragment((block_M,), accum_dtype)
        before = T.alloc_fragment((block_M,), accum_dtype)
        sums = T.alloc_fragment((block_M,), accum_dtype)
        tile_sums = T.alloc_fragment((block_M,), accum_dtype)

        T.fill(largest, -T.infinity(accum_dtype))
        T.clear(sums)
        for ko in T.serial(T.ceildiv(N, block_N)):
            # Columns past N must not take part: exp2 of minus infinity is zero.
            for i, j in T.Parallel(block_M, block_N):
                x[i, j] = T.if_then_else(
                    ko * block_N + j < N,
                    T.cast(X[bx * block_M + i, ko * block_N + j], accum_dtype) * LOG2_E,
                    -T.infinity(accum_dtype),
                )
            T.copy(largest, before)
            T.reduce_max(x, largest, dim=1, clear=False)
            for i, j in T.Parallel(block_M, block_N):
                x[i, j] = T.exp2(x[i, j] - largest[i])
            T.reduce_sum(x, tile_sums, dim=1)
            for i in T.Parallel(block_M):
                sums[i] = sums[i] * T.exp2(before[i] - largest[i]) + tile_sums[i]

        for i in T.Parallel(block_M):
            sums[i] = 1.0 / sums[i]
        for ko in T.serial(T.ceildiv(N, block_N)):
            T.copy(X[bx * block_M, ko * block_N], x)
            for i, j in T.Parallel(block_M, block_N):
                x[i, j] = T.exp2(x[i, j] * LOG2_E - largest[i]) * sums[i]
            T.copy(x, Y[bx * block_M, ko * block_N])

    return Y


def main():
    import torch

    for shape in ((16384, 8192), (77, 1001)):
        x = torch.randn(shape, device="cuda", dtype=torch.float16)
        expected = torch.softmax(x, dim=1)
        torch.testing.assert_close(online_softmax(x), expected, rtol=1e-2, atol=1e-3)
    print("online_softmax: equal to torch")


if __name__ == "__main__":
    main()
