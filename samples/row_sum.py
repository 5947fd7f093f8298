# Sums of the rows of a matrix, both of its sizes known only at run time.
# A block owns block_M rows and walks over them in tiles of block_N columns.

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def row_sum(block_M=8, block_N=512, threads=128):
    """Y[i] = sum of X[i, :]."""
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            tile = T.alloc_fragment((block_M, block_N), "float32")
            sums = T.alloc_fragment((block_M,), "float32")

            T.clear(sums)
            for ko in T.serial(T.ceildiv(N, block_N)):
                # Columns past N arrive as zeros and do not change the sums.
                T.copy(X[bx * block_M, ko * block_N], tile)
                T.reduce_sum(tile, sums, dim=1, clear=False)
            T.copy(sums, Y[bx * block_M])

    return main


def main():
    import torch

    kernel = row_sum()
    for shape in ((4096, 4096), (1000, 777)):
        x = torch.randn(shape, device="cuda")
        torch.testing.assert_close(kernel(x), x.sum(dim=1), rtol=1e-4, atol=1e-4)
    print("row_sum: equal to torch")


if __name__ == "__main__":
    main()
