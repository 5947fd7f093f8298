# Attention with grouped queries: `groups` heads of queries share one head of keys and values. Heads
# lie next to each other in memory: [batch, sequence, head, dim].

import tilelang
import tilelang.language as T

LOG2_E = 1.44269504  # exp(x) = exp2(x * LOG2_E)


@tilelang.jit(out_idx=[-1])
def gqa_attention(
    groups=4,
    dim=128,
    causal=True,
    block_M=128,
    block_N=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    """O = softmax(Q @ K^T / sqrt(dim)) @ V; head h of Q takes head h // groups of K."""
    batch, length, kv_heads = T.dynamic("batch, length, kv_heads")
    heads = kv_heads * groups
    scale = LOG2_E / dim**0.5

    @T.prim_func
    def main(
        Q: T.Tensor((batch, length, heads, dim), dtype),
        K: T.Tensor((batch, length, kv_heads, dim), dtype),
        V: T.Tensor((batch, length, kv_heads, dim), dtype),
        O: T.Tensor((batch, length, heads, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(length, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            S = T.alloc_fragment((block_M, block_N), accum_dtype)
            P = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, dim), accum_dtype)
            row_max = T.alloc_fragment((block_M,), accum_dtype)
            max_before = T.alloc_fragment((block_M,), accum_dtype)
            rescale = T.alloc_fragment((block_M,), accum_dtype)
            tile_sum = T.alloc_fragment((block_M,), accum_dtype)
            row_sum = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.clear(acc)
            T.clear(row_sum)
            T.fill(row_max, -T.infinity(accum_dtype))

            tiles = T.ceildiv(T.min(length, (bx + 1) * block_M) if causal else length, block_N)
            for ko in T.Pipelined(tiles, num_stages=num_stages):
                T.copy(K[bz, ko * block_N : (ko + 1) * block_N, by // groups, :], K_shared)
                T.copy(V[bz, ko * block_N : (ko + 1) * block_N, by // groups, :], V_shared)

                # The mask is what the scores start from: minus infinity stays what it is.
                for i, j in T.Parallel(block_M, block_N):
                    key = ko * block_N + j
                    hidden = key > bx * block_M + i if causal else key >= length
                    S[i, j] = T.if_then_else(hidden, -T.infinity(accum_dtype), 0)
                T.gemm(Q_shared, K_shared, S, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)

                T.copy(row_max, max_before)
                T.reduce_max(S, row_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    rescale[i] = T.exp2((max_before[i] - row_max[i]) * scale)
                for i, j in T.Parallel(block_M, block_N):
                    S[i, j] = T.exp2(S[i, j] * scale - row_max[i] * scale)
                T.reduce_sum(S, tile_sum, dim=1)
                for i in T.Parallel(block_M):
                    row_sum[i] = row_sum[i] * rescale[i] + tile_sum[i]
                for i, j in T.Parallel(block_M, dim):
                    acc[i, j] *= rescale[i]

                T.copy(S, P)
                T.gemm(P, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)

            for i, j in T.Parallel(block_M, dim):
                acc[i, j] /= row_sum[i]
            T.copy(acc, O[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return main


def main():
    import torch
    import torch.nn.functional as F

    kernel = gqa_attention()
    for batch, kv_heads, length in ((2, 8, 4096), (1, 1, 1000)):
        q = torch.randn(batch, length, kv_heads * 4, 128, device="cuda", dtype=torch.float16)
        k, v = (
            torch.randn(batch, length, kv_heads, 128, device="cuda", dtype=torch.float16)
            for _ in range(2)
        )
        heads_first = (x.transpose(1, 2) for x in (q, k, v))
        expected = F.scaled_dot_product_attention(*heads_first, is_causal=True, enable_gqa=True)
        torch.testing.assert_close(kernel(q, k, v), expected.transpose(1, 2), rtol=1e-2, atol=1e-2)
    print("gqa_attention: equal to torch")


if __name__ == "__main__":
    main()
