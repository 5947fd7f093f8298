"""Two products of one tile in one loop, as the halves of a gate."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gated(M, N, K, block_M=32, block_N=32, block_K=64, stages=2):
    rounds = T.ceildiv(K, block_K)

    @T.prim_func
    def main(
        X: T.Tensor((M, K), "float16"),
        V: T.Tensor((N, K), "float16"),
        W: T.Tensor((N, K), "float16"),
        Y: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, block_N), threads=128) as (by, bx):
            X_tile = T.alloc_shared((block_M, block_K), "float16")
            V_tile = T.alloc_shared((block_N, block_K), "float16")
            W_tile = T.alloc_shared((block_N, block_K), "float16")
            value = T.alloc_fragment((block_M, block_N), "float32")
            gate = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(value)
            T.clear(gate)
            for k in T.Pipelined(rounds, num_stages=stages) if stages else T.serial(rounds):
                T.copy(X[by * block_M, k * block_K], X_tile)
                T.copy(V[bx * block_N, k * block_K], V_tile)
                T.copy(W[bx * block_N, k * block_K], W_tile)
                T.gemm(X_tile, V_tile, value, transpose_B=True)
                T.gemm(X_tile, W_tile, gate, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                value[i, j] = value[i, j] / (1.0 + T.exp(-value[i, j])) * gate[i, j]
            T.copy(value, Y[by * block_M, bx * block_N])

    return main
