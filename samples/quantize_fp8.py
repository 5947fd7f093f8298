"""Quantization to fp8, a scale for every group of columns of a row.
Activations of a deep fp8 gemm are stored so: `group` neighbours share one float.
CDNA3 has other 8-bit floats: -D fp8=float8_e4m3fnuz.

Run: tile2c samples/quantize_fp8.py -o out &&
     tile2c run out --against samples/references.py:quantize_fp8
"""

import tilelang
import tilelang.language as T

LARGEST = {"float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0}


@tilelang.jit
def quantize_fp8(
    X,
    block_M: int = 16,
    group: int = 128,
    dtype: str = "float16",
    fp8: str = "float8_e4m3fn",
    threads: int = 128,
):
    """Q * scales = X, up to rounding; a group's largest becomes the largest of fp8."""
    largest = LARGEST[fp8]
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], dtype]
    Q = T.empty((M, N), fp8)
    scales = T.empty((M, T.ceildiv(N, group)), "float32")

    with T.Kernel(T.ceildiv(N, group), T.ceildiv(M, block_M), threads=threads) as (bx, by):
        x = T.alloc_fragment((block_M, group), "float32")
        scale = T.alloc_fragment((block_M,), "float32")
        inverse = T.alloc_fragment((block_M,), "float32")

        T.copy(X[by * block_M, bx * group], x)
        T.reduce_absmax(x, scale, dim=1)
        for i in T.Parallel(block_M):
            # A group of zeros gets a scale that can be divided by.
            scale[i] = T.max(scale[i], 1e-4) / largest
            inverse[i] = 1.0 / scale[i]
        for i, j in T.Parallel(block_M, group):
            x[i, j] = T.clamp(x[i, j] * inverse[i], -largest, largest)

        T.copy(x, Q[by * block_M, bx * group])
        for i in T.Parallel(block_M):
            scales[by * block_M + i, bx] = scale[i]

    return Q, scales


def main():
    import torch

    for M, N in ((16384, 8192), (100, 1000)):
        x = torch.randn(M, N, device="cuda", dtype=torch.float16)
        q, scales = quantize_fp8(x)
        back = q.float() * scales.repeat_interleave(128, dim=1)[:, :N]
        torch.testing.assert_close(back, x.float(), rtol=1e-1, atol=1e-2)
    print("quantize_fp8: what comes back is close to what went in")


if __name__ == "__main__":
    main()
