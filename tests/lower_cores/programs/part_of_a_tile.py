import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def part_of_a_tile(block_M=3, block_N=12, dtype="bfloat16"):
    """Rows copied over rows of the same tile; a row ends inside a block of 32 bytes."""
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=32) as (bx, by):
            x = T.alloc_shared((block_M, block_N), dtype)
            T.copy(X[by * block_M, bx * block_N], x)
            T.copy(x[0:1, :], x[2:3, :])
            T.copy(x, Y[by * block_M, bx * block_N])

    return main
