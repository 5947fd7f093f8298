import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def rows_filled(M=64, N=64, value="element"):
    """Rows from a length on get a value behind the copy: a copy that is cut leaves only 0."""

    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float32"),
        V: T.Tensor((8,), "float32"),
        L: T.Tensor((8,), "int32"),
        B: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
            s = T.alloc_shared((64, N), "float32")
            n = L[0]
            T.copy(A[bx * 64, 0], s)
            for i, j in T.Parallel(64, N):
                if i >= n:
                    if value == "element":
                        s[i, j] = V[0]
                    else:
                        s[i, j] = 0
            T.copy(s, B[bx * 64, 0])

    return main
