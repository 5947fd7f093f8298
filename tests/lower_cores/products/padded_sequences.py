import tilelang
import tilelang.language as T


@tilelang.jit
def padded_sequences(
    dim=32,
    causal=True,
    block_M=32,
    block_N=16,
    num_stages=1,
    dtype="float16",
    accum_dtype="float32",
):
    """Attention over packed sequences as other programs write it: what lies past an end is zeroed,
    scores start at minus infinity where nothing is to be seen."""
    rows_q, rows_k, heads, edges = T.dynamic("rows_q, rows_k, heads, edges")
    scale = 1.44269504 / dim**0.5

    @T.prim_func
    def main(
        Q: T.Tensor((rows_q, heads, dim), dtype),
        K: T.Tensor((rows_k, heads, dim), dtype),
        V: T.Tensor((rows_k, heads, dim), dtype),
        starts_q: T.Tensor((edges,), "int32"),
        starts_k: T.Tensor((edges,), "int32"),
        longest: T.int32,
        O: T.Tensor((rows_q, heads, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(longest, block_M), heads, edges - 1, threads=128) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            O_shared = T.alloc_shared((block_M, dim), dtype)
            S = T.alloc_fragment((block_M, block_N), accum_dtype)
            P = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, dim), accum_dtype)
            high = T.alloc_fragment((block_M,), accum_dtype)
            high_before = T.alloc_fragment((block_M,), accum_dtype)
            rescale = T.alloc_fragment((block_M,), accum_dtype)
            sums = T.alloc_fragment((block_M,), accum_dtype)
            total = T.alloc_fragment((block_M,), accum_dtype)

            q_start = starts_q[bz]
            k_start = starts_k[bz]
            q_length = starts_q[bz + 1] - q_start
            k_length = starts_k[bz + 1] - k_start

            T.copy(Q[q_start + bx * block_M : q_start + bx * block_M + block_M, by, :], Q_shared)
            for i, d in T.Parallel(block_M, dim):
                if bx * block_M + i >= q_length:
                    Q_shared[i, d] = 0
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(high, -T.infinity(accum_dtype))

            for k in T.Pipelined(T.ceildiv(k_length, block_N), num_stages=num_stages):
                T.copy(K[k_start + k * block_N : k_start + (k + 1) * block_N, by, :], K_shared)
                for i, d in T.Parallel(block_N, dim):
                    if k * block_N + i >= k_length:
                        K_shared[i, d] = 0
                for i, j in T.Parallel(block_M, block_N):
                    S[i, j] = T.if_then_else(
                        (bx * block_M + i >= k * block_N + j if causal else True)
                        and (bx * block_M + i < q_length and k * block_N + j < k_length),
                        0,
                        -1e9,
                    )
                T.gemm(Q_shared, K_shared, S, transpose_B=True)
                T.copy(high, high_before)
                T.reduce_max(S, high, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    rescale[i] = T.exp2(high_before[i] * scale - high[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    S[i, j] = T.exp2(S[i, j] * scale - high[i] * scale)
                T.reduce_sum(S, sums, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * rescale[i] + sums[i]
                T.copy(S, P)
                for i, j in T.Parallel(block_M, dim):
                    acc[i, j] *= rescale[i]
                T.copy(V[k_start + k * block_N : k_start + (k + 1) * block_N, by, :], V_shared)
                for i, d in T.Parallel(block_N, dim):
                    if k * block_N + i >= k_length:
                        V_shared[i, d] = 0
                T.gemm(P, V_shared, acc)
            for i, j in T.Parallel(block_M, dim):
                acc[i, j] /= total[i]
            T.copy(acc, O_shared)
            for i, d in T.Parallel(block_M, dim):
                if bx * block_M + i < q_length:
                    O[q_start + bx * block_M + i, by, d] = O_shared[i, d]

    return main
