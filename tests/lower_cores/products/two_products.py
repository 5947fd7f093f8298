"""Two products in a row: the second multiplies what the vector cores make of the first."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def two_products(M, N, block_M=32, block_N=32, dim=48, dtype="bfloat16"):
    """O = relu(Q @ K^T)^2 @ V, over tiles of N"""

    @T.prim_func
    def main(
        Q: T.Tensor((M, dim), dtype),
        K: T.Tensor((N, dim), dtype),
        V: T.Tensor((N, dim), dtype),
        O: T.Tensor((M, dim), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            q = T.alloc_shared((block_M, dim), dtype)
            k = T.alloc_shared((block_N, dim), dtype)
            v = T.alloc_shared((block_N, dim), dtype)
            s = T.alloc_fragment((block_M, block_N), "float32")
            p = T.alloc_shared((block_M, block_N), dtype)
            o = T.alloc_fragment((block_M, dim), "float32")
            T.copy(Q[bx * block_M, 0], q)
            T.clear(o)
            for ko in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(K[ko * block_N, 0], k)
                T.copy(V[ko * block_N, 0], v)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                for i, j in T.Parallel(block_M, block_N):
                    x = T.max(s[i, j], 0)
                    p[i, j] = x * x
                T.gemm(p, v, o)
            T.copy(o, O[bx * block_M, 0])

    return main
