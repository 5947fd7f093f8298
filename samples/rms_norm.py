"""RMSNorm over the rows of a matrix: each divided by the root of its mean square, then scaled.
One block takes one row and keeps all of it in registers between reading and writing it.

Run: tile2c samples/rms_norm.py -o out && tile2c run out --against samples/references.py:rms_norm
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def rms_norm(N, block_M=1, eps=1e-6, dtype="float16", accum_dtype="float32", threads=256):
    """Y[i, :] = X[i, :] / sqrt(mean(X[i, :]^2) + eps) * weight"""
    M = T.dynamic("M")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        weight: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), accum_dtype)
            squares = T.alloc_fragment((block_M, N), accum_dtype)
            scale = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, N):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, scale, dim=1)

            # eps keeps a row of zeros from a division by zero.
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + eps)
            for i, j in T.Parallel(block_M, N):
                x[i, j] *= scale[i] * weight[j]

            T.copy(x, Y[bx * block_M, 0])

    return main


def main(N=8192):
    import torch

    kernel = rms_norm(N)
    weight = torch.randn(N, device="cuda", dtype=torch.float16)
    for rows in (16384, 77):
        x = torch.randn(rows, N, device="cuda", dtype=torch.float16)
        expected = torch.nn.functional.rms_norm(x, (N,), weight, 1e-6)
        torch.testing.assert_close(kernel(x, weight), expected, rtol=1e-2, atol=1e-2)
    print("rms_norm: equal to torch")


if __name__ == "__main__":
    main()
