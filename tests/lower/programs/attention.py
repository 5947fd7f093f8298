"""Attention as people write it: one pipelined loop with two products and a softmax between them."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def attention(
    dim=64, causal=False, block_M=64, block_N=32, num_stages=2, threads=128, dtype="float16"
):
    """O = softmax(Q @ K^T / sqrt(dim)) @ V for each batch and head; rows in [batch, length, heads, dim]."""
    batch, length, heads = T.dynamic("batch, length, heads")
    scale = (1.0 / dim) ** 0.5 * 1.44269504  # log2(e)

    @T.prim_func
    def main(
        Q: T.Tensor((batch, length, heads, dim), dtype),
        K: T.Tensor((batch, length, heads, dim), dtype),
        V: T.Tensor((batch, length, heads, dim), dtype),
        O: T.Tensor((batch, length, heads, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(length, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), dtype)
            output = T.alloc_fragment((block_M, dim), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            shrink = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")

            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.clear(output)
            T.clear(total)
            T.fill(top, -T.infinity("float32"))
            rounds = (
                T.min(T.ceildiv(length, block_N), T.ceildiv((bx + 1) * block_M, block_N))
                if causal
                else T.ceildiv(length, block_N)
            )
            for k in T.Pipelined(rounds, num_stages=num_stages):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, by, :], K_shared)
                for i, j in T.Parallel(block_M, block_N):
                    column = k * block_N + j
                    outside = (column > bx * block_M + i) if causal else (column >= length)
                    scores[i, j] = T.if_then_else(outside, -T.infinity("float32"), 0)
                T.gemm(
                    Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow
                )
                T.copy(top, before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    shrink[i] = T.exp2((before[i] - top[i]) * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2((scores[i, j] - top[i]) * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * shrink[i] + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    output[i, j] *= shrink[i]
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by, :], V_shared)
                T.gemm(weights, V_shared, output, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                output[i, j] /= total[i]
            T.copy(output, O[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return main


attention()
