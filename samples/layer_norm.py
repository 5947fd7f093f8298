"""LayerNorm over the rows of a matrix, with weight and bias.
One block takes one row; mean and variance are taken from registers, one after the other.

Run: tile2c samples/layer_norm.py -o out &&
     tile2c run out --against samples/references.py:layer_norm
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def layer_norm(N, block_M=1, eps=1e-5, dtype="float16", accum_dtype="float32", threads=256):
    """Y[i, :] = (X[i, :] - mean) / sqrt(variance + eps) * weight + bias"""
    M = T.dynamic("M")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        weight: T.Tensor((N,), dtype),
        bias: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), accum_dtype)
            squares = T.alloc_fragment((block_M, N), accum_dtype)
            mean = T.alloc_fragment((block_M,), accum_dtype)
            scale = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(X[bx * block_M, 0], x)
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(block_M):
                mean[i] /= N

            # Squares of what is left without the mean: the mean of squares would lose digits.
            for i, j in T.Parallel(block_M, N):
                x[i, j] -= mean[i]
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + eps)

            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * scale[i] * weight[j] + bias[j]
            T.copy(x, Y[bx * block_M, 0])

    return main


def main(N=8192):
    import torch

    kernel = layer_norm(N)
    weight, bias = torch.randn(2, N, device="cuda", dtype=torch.float16)
    for rows in (16384, 77):
        x = torch.randn(rows, N, device="cuda", dtype=torch.float16)
        expected = torch.nn.functional.layer_norm(x, (N,), weight, bias, 1e-5)
        torch.testing.assert_close(kernel(x, weight, bias), expected, rtol=1e-2, atol=1e-2)
    print("layer_norm: equal to torch")


if __name__ == "__main__":
    main()
