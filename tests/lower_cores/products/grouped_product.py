import tilelang
import tilelang.language as T


@tilelang.jit
def grouped_product(block_M=32, block_N=32, block_K=32, N=40, K=48, dtype="float16"):
    """A product for each group of rows, whose sizes and starts are tensors."""
    rows, groups, blocks = T.dynamic("rows, groups, blocks")

    @T.prim_func
    def main(
        A: T.Tensor((rows, K), dtype),
        B: T.Tensor((groups, K, N), dtype),
        sizes: T.Tensor((groups,), "int32"),
        starts: T.Tensor((groups,), "int32"),
        group_of: T.Tensor((blocks,), "int32"),
        block_in_group: T.Tensor((blocks,), "int32"),
        C: T.Tensor((rows, N), dtype),
    ):
        with T.Kernel(blocks, T.ceildiv(N, block_N), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            group = group_of[bx]
            first = starts[group] + block_in_group[bx] * block_M
            left = T.max(0, T.min(block_M, sizes[group] - block_in_group[bx] * block_M))
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[first : first + block_M, k * block_K : (k + 1) * block_K], A_shared)
                T.copy(
                    B[group, k * block_K : (k + 1) * block_K, by * block_N : (by + 1) * block_N],
                    B_shared,
                )
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                if i < left:
                    C[first + i, by * block_N + j] = C_local[i, j]

    return main
