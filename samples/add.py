# Elementwise addition of two vectors of any length.
# Each block handles one stretch of block_N elements.

import tilelang
import tilelang.language as T


@tilelang.jit
def add(A, B, block_N: int = 1024, dtype: str = "float32", threads: int = 256):
    """C = A + B, element by element."""
    N = T.const("N")
    A: T.Tensor[[N], dtype]
    B: T.Tensor[[N], dtype]
    C = T.empty((N,), dtype)

    with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
        for i in T.Parallel(block_N):
            C[bx * block_N + i] = A[bx * block_N + i] + B[bx * block_N + i]

    return C


def main():
    import torch

    for size in (1 << 20, 1000003):
        a = torch.randn(size, device="cuda")
        b = torch.randn(size, device="cuda")
        torch.testing.assert_close(add(a, b), a + b)
    print("add: equal to torch")


if __name__ == "__main__":
    main()
