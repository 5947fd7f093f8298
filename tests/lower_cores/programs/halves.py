import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def halves(M, N, bm=32, dtype="float16"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, bm), threads=128) as i0:
            for r, c in T.Parallel(bm, N // 2):
                Y[i0 * bm + r, c] = X[i0 * bm + r, c] * 2 + c
                Y[i0 * bm + r, c + N // 2] = X[i0 * bm + r, c + N // 2] - 1

    return main
