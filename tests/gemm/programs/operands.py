"""Products whose operands are fragments, parts of tiles, or results of other products."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def from_fragments(
    M=64,
    N=48,
    K=64,
    threads=64,
    dtype="float16",
    sum_dtype="float32",
    trans_A=False,
    trans_B=False,
    a_held=True,
    b_held=False,
):
    @T.prim_func
    def main(
        A: T.Tensor((K, M) if trans_A else (M, K), dtype),
        B: T.Tensor((N, K) if trans_B else (K, N), dtype),
        C: T.Tensor((M, N), sum_dtype),
    ):
        with T.Kernel(1, threads=threads):
            A_tile = T.alloc_shared((K, M) if trans_A else (M, K), dtype)
            B_tile = T.alloc_shared((N, K) if trans_B else (K, N), dtype)
            A_local = T.alloc_fragment((K, M) if trans_A else (M, K), dtype)
            B_local = T.alloc_fragment((N, K) if trans_B else (K, N), dtype)
            C_local = T.alloc_fragment((M, N), sum_dtype)
            T.copy(A, A_tile)
            T.copy(B, B_tile)
            if a_held:
                T.copy(A_tile, A_local)
            if b_held:
                T.copy(B_tile, B_local)
            T.clear(C_local)
            if a_held and b_held:
                T.gemm(A_local, B_local, C_local, trans_A, trans_B)
            elif a_held:
                T.gemm(A_local, B_tile, C_local, trans_A, trans_B)
            else:
                T.gemm(A_tile, B_local, C_local, trans_A, trans_B)
            T.copy(C_local, C)

    return main


@tilelang.jit(out_idx=[-1])
def parts(M=32, N=32, K=64, threads=64, dtype="float16", sum_dtype="float32"):
    """A from a slot of a stack, B from columns of a wide tile; leading extents of 1."""

    @T.prim_func
    def main(
        A: T.Tensor((2, M, K), dtype),
        B: T.Tensor((K, 2 * N), dtype),
        C: T.Tensor((M, N), sum_dtype),
    ):
        with T.Kernel(1, threads=threads):
            A_stack = T.alloc_shared((2, M, K), dtype)
            B_wide = T.alloc_shared((K, 2 * N), dtype)
            C_local = T.alloc_fragment((M, N), sum_dtype)
            T.copy(A, A_stack)
            T.copy(B, B_wide)
            T.clear(C_local)
            for s in T.serial(2):
                T.gemm(A_stack[s, :, :], B_wide[:, s * N : s * N + N], C_local)
            for k in T.serial(2):
                T.gemm(
                    A_stack[0:1, 0:M, k * 32 : k * 32 + 32],
                    B_wide[k * 32 : k * 32 + 32, 0:N],
                    C_local,
                )
            T.copy(C_local, C)

    return main


@tilelang.jit(out_idx=[-1])
def clearing(M=32, N=32, K=32, rounds=3, threads=64, always=False, dtype="float16"):
    """Only what came since the last round 1 counts."""

    @T.prim_func
    def main(
        A: T.Tensor((rounds, M, K), dtype),
        B: T.Tensor((rounds, K, N), dtype),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(1, threads=threads):
            A_shared = T.alloc_shared((M, K), dtype)
            B_shared = T.alloc_shared((K, N), dtype)
            C_local = T.alloc_fragment((M, N), "float32")
            for r in T.serial(rounds):
                T.copy(A[r, 0, 0], A_shared)
                T.copy(B[r, 0, 0], B_shared)
                if always:
                    T.gemm(A_shared, B_shared, C_local, clear_accum=True)
                else:
                    T.gemm(A_shared, B_shared, C_local, clear_accum=r <= 1)
            T.copy(C_local, C)

    return main


@tilelang.jit(out_idx=[-1])
def chain(
    M=64,
    L=64,
    N=32,
    K=32,
    threads=128,
    dtype="float16",
    full_rows=True,
):
    """C = (A @ B^T) @ V with the first product kept in registers and scaled by row maxima."""
    policy = T.GemmWarpPolicy.FullRow if full_rows else T.GemmWarpPolicy.FullCol

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((L, K), dtype),
        V: T.Tensor((L, N), dtype),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(1, threads=threads):
            A_shared = T.alloc_shared((M, K), dtype)
            B_shared = T.alloc_shared((L, K), dtype)
            V_shared = T.alloc_shared((L, N), dtype)
            S = T.alloc_fragment((M, L), "float32")
            P = T.alloc_fragment((M, L), dtype)
            C_local = T.alloc_fragment((M, N), "float32")
            top = T.alloc_fragment((M,), "float32")
            T.copy(A, A_shared)
            T.copy(B, B_shared)
            T.copy(V, V_shared)
            T.clear(S)
            T.gemm(A_shared, B_shared, S, transpose_B=True, policy=policy)
            T.reduce_max(S, top, dim=1)
            for i, j in T.Parallel(M, L):
                P[i, j] = S[i, j] - top[i]
            T.clear(C_local)
            T.gemm(P, V_shared, C_local, policy=policy)
            for i, j in T.Parallel(M, N):
                C_local[i, j] = C_local[i, j] + top[i]
            T.copy(C_local, C)

    return main
