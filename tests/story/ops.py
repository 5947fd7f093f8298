# Three kernels of a small network.

import tilelang
import tilelang.language as T


@tilelang.jit
def scale_add(N, alpha=2.0, block=512, threads=128):
    """C = alpha * A + B"""

    @T.prim_func
    def scale_add(
        A: T.Tensor((N,), "float32"),
        B: T.Tensor((N,), "float32"),
        C: T.Tensor((N,), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] * alpha + B[bx * block + i]

    return scale_add


@tilelang.jit
def row_max(M, N=256, block_M=4, threads=128):
    """R = max(X, axis=1)"""

    @T.prim_func
    def row_max(X: T.Tensor((M, N), "float32"), R: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            best = T.alloc_fragment((block_M,), "float32")
            # One pass over the rows.
            T.copy(X[bx * block_M, 0], x)
            T.reduce_max(x, best, dim=1)
            T.copy(best, R[bx * block_M])

    return row_max


@tilelang.jit
def linear(M, N, K, block=64, block_K=32, num_stages=3, threads=128):
    """C = A @ B"""

    @T.prim_func
    def linear(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block), "float16")
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block, bx * block])

    return linear
