"""Transpose with a scale and a bias on the way: Y = (X * scale + bias)^T.
Tiles go through shared memory, so that rows are read and columns are written in whole lines.

Run: tile2c samples/transpose_scale_bias.py -o out &&
     tile2c run out --against samples/references.py:transpose_scale_bias
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def transpose_scale_bias(block_M=64, block_N=64, scale=0.5, dtype="float16", threads=256):
    """Y[j, i] = X[i, j] * scale + bias[j]"""
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        bias: T.Tensor((N,), dtype),
        Y: T.Tensor((N, M), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            tile = T.alloc_shared((block_M, block_N), dtype)

            T.copy(X[by * block_M, bx * block_N], tile)

            # Neighbours in i are neighbours in a row of Y, and lie a row apart in the tile.
            for j, i in T.Parallel(block_N, block_M):
                x = T.cast(tile[i, j], "float32")
                Y[bx * block_N + j, by * block_M + i] = x * scale + bias[bx * block_N + j]

    return main


def main():
    import torch

    kernel = transpose_scale_bias()
    for M, N in ((16384, 16384), (1000, 777)):
        x = torch.randn(M, N, device="cuda", dtype=torch.float16)
        bias = torch.randn(N, device="cuda", dtype=torch.float16)
        torch.testing.assert_close(kernel(x, bias), (x * 0.5 + bias).T, rtol=1e-2, atol=1e-2)
    print("transpose_scale_bias: equal to torch")


if __name__ == "__main__":
    main()
