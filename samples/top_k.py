"""The k largest of each row and where they stand, as a router of experts needs them.
Rows are short and stay in registers; the largest is taken out k times.

Run: tile2c samples/top_k.py -o out && tile2c run out --against samples/references.py:top_k
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-2, -1])
def top_k(N, k=6, block_M=16, threads=128):
    """values[i, :] = the k largest of X[i, :], largest first; indices[i, :] = their columns.

    Of equal elements the one with the largest column comes first.
    """
    M = T.dynamic("M")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        values: T.Tensor((M, k), "float32"),
        indices: T.Tensor((M, k), "int32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            columns = T.alloc_fragment((block_M, N), "int32")
            largest = T.alloc_fragment((block_M,), "float32")
            column = T.alloc_fragment((block_M,), "int32")

            T.copy(X[bx * block_M, 0], x)
            for step in T.serial(k):
                T.reduce_max(x, largest, dim=1)
                for i, j in T.Parallel(block_M, N):
                    columns[i, j] = T.if_then_else(x[i, j] == largest[i], j, -1)
                T.reduce_max(columns, column, dim=1)

                # What has been taken never is the largest again.
                for i, j in T.Parallel(block_M, N):
                    x[i, j] = T.if_then_else(column[i] == j, -T.infinity("float32"), x[i, j])
                for i in T.Parallel(block_M):
                    values[bx * block_M + i, step] = largest[i]
                    indices[bx * block_M + i, step] = column[i]

    return main


def main(N=128):
    import torch

    kernel = top_k(N)
    for M in (32768, 77):
        x = torch.randn(M, N, device="cuda")
        values, indices = kernel(x)
        expected = torch.topk(x, 6, dim=1)
        torch.testing.assert_close(values, expected.values)
        assert torch.equal(x.gather(1, indices.long()), values)
    print("top_k: equal to torch")


if __name__ == "__main__":
    main()
