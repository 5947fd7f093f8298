# Convolution of images in the order batch, row, column, channel, as a product of matrices: each row
# of the left one is what the kernel covers for one pixel of the output. It is gathered tile by tile
# and never stored.

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def conv2d(
    H,
    W,
    C,
    F,
    K=3,
    stride=1,
    dilation=1,
    padding=1,
    block_M=128,
    block_N=128,
    block_K=32,
    num_stages=3,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    """out[n, :, :, f] = sum over c of data[n, :, :, c] convolved with kernel[:, :, c, f]"""
    N = T.dynamic("N")
    OH = (H + 2 * padding - dilation * (K - 1) - 1) // stride + 1
    OW = (W + 2 * padding - dilation * (K - 1) - 1) // stride + 1

    @T.prim_func
    def main(
        data: T.Tensor((N, H, W, C), dtype),
        kernel: T.Tensor((K, K, C, F), dtype),
        out: T.Tensor((N, OH, OW, F), dtype),
    ):
        with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * OH * OW, block_M), threads=threads) as (
            bx,
            by,
        ):
            data_shared = T.alloc_shared((block_M, block_K), dtype)
            kernel_shared = T.alloc_shared((block_K, block_N), dtype)
            out_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            kernel_flat = T.reshape(kernel, (K * K * C, F))
            out_flat = T.reshape(out, (N * OH * OW, F))

            T.clear(out_local)
            for ko in T.Pipelined(T.ceildiv(K * K * C, block_K), num_stages=num_stages):
                T.im2col(data, data_shared, by, ko, K, stride, dilation, padding)
                T.copy(kernel_flat[ko * block_K, bx * block_N], kernel_shared)
                T.gemm(data_shared, kernel_shared, out_local)

            T.copy(out_local, out_flat[by * block_M, bx * block_N])

    return main


def main(H=64, W=64, C=128, F=128):
    import torch

    kernel = conv2d(H, W, C, F)
    for N in (128, 3):
        data = torch.randn(N, H, W, C, device="cuda", dtype=torch.float16)
        weights = torch.randn(3, 3, C, F, device="cuda", dtype=torch.float16)
        images = data.permute(0, 3, 1, 2)
        expected = torch.conv2d(images, weights.permute(3, 2, 0, 1), padding=1)
        found = kernel(data, weights).permute(0, 3, 1, 2)
        torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-1)
    print("conv2d: equal to torch")


if __name__ == "__main__":
    main()
