# Attention over sequences of different lengths, packed one behind the other: sequence b holds the rows
# starts[b] to starts[b + 1] of Q, K, V and O.

import tilelang
import tilelang.language as T

LOG2_E = 1.44269504  # exp(x) = exp2(x * LOG2_E)


@tilelang.jit(out_idx=[-1])
def varlen_attention(
    dim=128,
    causal=True,
    block_M=128,
    block_N=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    """O = softmax(Q @ K^T / sqrt(dim)) @ V for each head of each sequence."""
    total, heads, edges = T.dynamic("total, heads, edges")
    scale = LOG2_E / dim**0.5

    @T.prim_func
    def main(
        Q: T.Tensor((total, heads, dim), dtype),
        K: T.Tensor((total, heads, dim), dtype),
        V: T.Tensor((total, heads, dim), dtype),
        starts: T.Tensor((edges,), "int32"),
        longest: T.int32,
        O: T.Tensor((total, heads, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(longest, block_M), heads, edges - 1, threads=threads) as (
            bx,
            by,
            bz,
        ):
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

            start = starts[bz]
            T.assume(start >= 0)
            length = starts[bz + 1] - start
            first = bx * block_M

            T.copy(Q[start + first : start + first + block_M, by, :], Q_shared)
            T.clear(acc)
            T.clear(row_sum)
            T.fill(row_max, -T.infinity(accum_dtype))

            # Shorter sequences leave their last blocks without work.
            keys = T.min(length, first + block_M) if causal else length
            tiles = T.if_then_else(first < length, T.ceildiv(keys, block_N), 0)
            for ko in T.Pipelined(tiles, num_stages=num_stages):
                # Rows past the end belong to the next sequence: the mask takes them out again.
                T.copy(K[start + ko * block_N : start + (ko + 1) * block_N, by, :], K_shared)
                T.copy(V[start + ko * block_N : start + (ko + 1) * block_N, by, :], V_shared)
                T.gemm(
                    Q_shared,
                    K_shared,
                    S,
                    transpose_B=True,
                    clear_accum=True,
                    policy=T.GemmWarpPolicy.FullRow,
                )
                for i, j in T.Parallel(block_M, block_N):
                    end = T.min(first + i + 1, length) if causal else length
                    S[i, j] = T.if_then_else(
                        ko * block_N + j < end, S[i, j], -T.infinity(accum_dtype)
                    )

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

            # The rows behind this sequence are another block's to write.
            for i, j in T.Parallel(block_M, dim):
                if first + i < length:
                    O[start + first + i, by, j] = acc[i, j] / row_sum[i]

    return main


def main():
    import torch
    import torch.nn.functional as F

    kernel = varlen_attention()
    lengths = (1000, 1, 129, 4096)
    starts = torch.tensor((0, *lengths), device="cuda").cumsum(0, dtype=torch.int32)
    q, k, v = (
        torch.randn(sum(lengths), 16, 128, device="cuda", dtype=torch.float16) for _ in range(3)
    )
    parts = (x.transpose(0, 1).split(lengths, dim=1) for x in (q, k, v))
    expected = [
        F.scaled_dot_product_attention(*(x[None] for x in qkv), is_causal=True)[0]
        for qkv in zip(*parts, strict=True)
    ]
    expected = torch.cat(expected, dim=1).transpose(0, 1)
    found = kernel(q, k, v, starts, max(lengths))
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)
    print("varlen_attention: equal to torch")


if __name__ == "__main__":
    main()
