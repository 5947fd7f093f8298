# The k largest of each row and where they stand, as a router of experts needs them.
# Rows are short and stay in registers; the largest is taken out k times.

import tilelang
import tilelang.language as T


@tilelang.jit
def top_k(X, k: int = 6, block_M: int = 64, threads: int = 128):
    """values[i, :] = the k largest of X[i, :], largest first; indices[i, :] = their columns.

    Of equal elements the one with the smallest column comes first.
    Run it: tile2c run OUT top_k --against samples/references.py:top_k
    """
    M = T.dynamic("M")
    N = T.const("N")
    X: T.Tensor((M, N), "float32")
    values = T.empty((M, k), "float32")
    indices = T.empty((M, k), "int32")

    with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
        x = T.alloc_fragment((block_M, N), "float32")
        columns = T.alloc_fragment((block_M, N), "int32")
        largest = T.alloc_fragment((block_M,), "float32")
        column = T.alloc_fragment((block_M,), "int32")

        T.copy(X[bx * block_M, 0], x)
        for step in T.serial(k):
            T.reduce_max(x, largest, dim=1)
            for i, j in T.Parallel(block_M, N):
                columns[i, j] = T.if_then_else(x[i, j] == largest[i], j, N)
            T.reduce_min(columns, column, dim=1)

            # What has been taken never is the largest again.
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.if_then_else(column[i] == j, -T.infinity("float32"), x[i, j])
            for i in T.Parallel(block_M):
                values[bx * block_M + i, step] = largest[i]
                indices[bx * block_M + i, step] = column[i]

    return values, indices


def main():
    import torch

    for M in (32768, 77):
        x = torch.randn(M, 128, device="cuda")
        values, indices = top_k(x)
        expected = torch.topk(x, 6, dim=1)
        torch.testing.assert_close(values, expected.values)
        assert torch.equal(x.gather(1, indices.long()), values)
    print("top_k: equal to torch")


if __name__ == "__main__":
    main()
