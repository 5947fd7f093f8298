"""Sums of the columns of a matrix, both of its sizes known only at run time.
A block owns block_N columns and walks down the rows in tiles; its threads meet once, at the end.

Run: tile2c samples/column_sum.py -o out &&
     tile2c run out --against samples/references.py:column_sum
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def column_sum(block_M=128, block_N=32, threads=256):
    """Y[j] = sum of X[:, j]."""
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
            tile = T.alloc_fragment((block_M, block_N), "float32")
            sums = T.alloc_fragment((block_N,), "float32")

            T.clear(sums)
            for mo in T.serial(T.ceildiv(M, block_M)):
                # Rows past M arrive as zeros and do not change the sums.
                T.copy(X[mo * block_M, bx * block_N], tile)
                T.reduce_sum(tile, sums, dim=0, clear=False)
            T.copy(sums, Y[bx * block_N])

    return main


def main():
    import torch

    kernel = column_sum()
    for shape in ((16384, 16384), (1000, 777)):
        x = torch.randn(shape, device="cuda")
        torch.testing.assert_close(kernel(x), x.sum(dim=0), rtol=1e-4, atol=1e-3)
    print("column_sum: equal to torch")


if __name__ == "__main__":
    main()
