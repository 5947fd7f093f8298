# Attention in one pass over the keys (FlashAttention): the scores of a tile are used up before the
# next tile comes, and never leave the registers.
# Queries are the last of the keys: with `causal`, query i sees the keys up to i + seq_kv - seq_q.

import tilelang
import tilelang.language as T

LOG2_E = 1.44269504  # exp(x) = exp2(x * LOG2_E)


@tilelang.jit(out_idx=[-1])
def flash_attention(
    dim=128,
    causal=True,
    block_M=128,
    block_N=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    """O = softmax(Q @ K^T / sqrt(dim)) @ V for each head of each batch."""
    batch, heads, seq_q, seq_kv = T.dynamic("batch, heads, seq_q, seq_kv")
    scale = LOG2_E / dim**0.5

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, seq_q, dim), dtype),
        K: T.Tensor((batch, heads, seq_kv, dim), dtype),
        V: T.Tensor((batch, heads, seq_kv, dim), dtype),
        O: T.Tensor((batch, heads, seq_q, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(seq_q, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            S = T.alloc_fragment((block_M, block_N), accum_dtype)
            P = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, dim), accum_dtype)
            row_max = T.alloc_fragment((block_M,), accum_dtype)
            max_before = T.alloc_fragment((block_M,), accum_dtype)
            rescale = T.alloc_fragment((block_M,), accum_dtype)
            row_sum = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.clear(acc)
            T.clear(row_sum)
            T.fill(row_max, -T.infinity(accum_dtype))

            # Tiles of keys that no query of this block sees are not even loaded.
            if causal:
                T.assume(seq_kv >= seq_q)
            past = seq_kv - seq_q
            first = bx * block_M + past
            keys = T.min(seq_kv, first + block_M) if causal else seq_kv
            for ko in T.Pipelined(T.ceildiv(keys, block_N), num_stages=num_stages):
                T.copy(K[bz, by, ko * block_N : (ko + 1) * block_N, :], K_shared)
                T.copy(V[bz, by, ko * block_N : (ko + 1) * block_N, :], V_shared)

                # S = Q @ K^T, and minus infinity where a query does not see a key.
                T.gemm(
                    Q_shared, K_shared, S, transpose_B=True, clear_accum=True,
                    policy=T.GemmWarpPolicy.FullRow,
                )  # fmt: skip
                if (ko + 1) * block_N > (first + 1 if causal else seq_kv):
                    for i, j in T.Parallel(block_M, block_N):
                        end = T.min(first + i + 1, seq_kv) if causal else seq_kv
                        if ko * block_N + j >= end:
                            S[i, j] = -T.infinity(accum_dtype)

                # Exponentials are taken relative to the largest score so far. When it grows, what was
                # summed up under the old one shrinks.
                T.copy(row_max, max_before)
                T.reduce_max(S, row_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    rescale[i] = T.exp2((max_before[i] - row_max[i]) * scale)
                    row_sum[i] *= rescale[i]
                for i, j in T.Parallel(block_M, dim):
                    acc[i, j] *= rescale[i]
                for i, j in T.Parallel(block_M, block_N):
                    S[i, j] = T.exp2(S[i, j] * scale - row_max[i] * scale)
                T.reduce_sum(S, row_sum, dim=1, clear=False)

                T.copy(S, P)
                T.gemm(P, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)

            for i, j in T.Parallel(block_M, dim):
                acc[i, j] /= row_sum[i]
            T.copy(acc, O[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return main


def main():
    import torch
    import torch.nn.functional as F

    kernel = flash_attention()
    for batch, heads, length in ((2, 16, 4096), (1, 3, 1000)):
        q, k, v = (
            torch.randn(batch, heads, length, 128, device="cuda", dtype=torch.float16)
            for _ in range(3)
        )
        expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        torch.testing.assert_close(kernel(q, k, v), expected, rtol=1e-2, atol=1e-2)
    print("flash_attention: equal to torch")


if __name__ == "__main__":
    main()
