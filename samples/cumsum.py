"""Running sums along the rows of a matrix, both of its sizes known only at run time.
A block walks along its rows in tiles and carries the sums so far from one tile to the next.

Run: tile2c samples/cumsum.py -o out && tile2c run out --against samples/references.py:cumsum
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def cumsum(block_M=4, block_N=512, dtype="float32", threads=128):
    """Y[i, j] = X[i, 0] + ... + X[i, j]"""
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            tile = T.alloc_fragment((block_M, block_N), dtype)
            carry = T.alloc_fragment((block_M,), dtype)
            total = T.alloc_fragment((block_M,), dtype)

            T.clear(carry)
            for ko in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx * block_M, ko * block_N], tile)
                T.reduce_sum(tile, total, dim=1)
                T.cumsum(tile, dim=1)
                for i, j in T.Parallel(block_M, block_N):
                    tile[i, j] += carry[i]
                T.copy(tile, Y[bx * block_M, ko * block_N])
                # Where the next tile goes on.
                for i in T.Parallel(block_M):
                    carry[i] += total[i]

    return main


def main():
    import torch

    kernel = cumsum()
    for shape in ((16384, 8192), (1000, 777)):
        x = torch.randn(shape, device="cuda")
        torch.testing.assert_close(kernel(x), x.cumsum(dim=1), rtol=1e-3, atol=1e-3)
    print("cumsum: equal to torch")


if __name__ == "__main__":
    main()
