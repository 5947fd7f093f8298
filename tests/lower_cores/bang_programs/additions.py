import tilelang
import tilelang.language as T


@tilelang.jit
def additions(block_M=16, block_N=32):
    """Every block adds to the same sums: a tile as a whole, and elements of a loop."""
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        columns: T.Tensor((N,), "float32"),
        total: T.Tensor((1,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, block_N), threads=128) as (by, bx):
            x = T.alloc_fragment((block_M, block_N), "float32")
            sums = T.alloc_fragment((block_N,), "float32")
            one = T.alloc_fragment((1,), "float32")
            T.copy(X[by * block_M, bx * block_N], x)
            T.reduce_sum(x, sums, dim=0)
            T.reduce_sum(sums, one, dim=0)
            for j in T.Parallel(block_N):
                if bx * block_N + j < N:
                    T.atomic_add(columns[bx * block_N + j], sums[j])
            T.atomic_add(total, one)

    return main
