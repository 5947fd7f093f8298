import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def reductions(block_M=16, block_N=72, dtype="float16"):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, 6), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_shared((block_M, block_N), dtype)
            a = T.alloc_fragment((block_M, 1), dtype)
            b = T.alloc_fragment((block_M,), "float32")
            c = T.alloc_fragment((block_M,), "float32")
            d = T.alloc_fragment((block_M,), "float32")
            e = T.alloc_fragment((block_M,), "float32")
            T.fill(a, -100)
            T.fill(c, 1000)
            T.clear(d)
            for ko in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx * block_M, ko * block_N], x)
                T.reduce_max(x, a, dim=-1, clear=False)
                T.reduce_absmax(x, b, dim=1)
                T.reduce_min(x, c, dim=1, clear=False)
                T.reduce_abssum(x, e, dim=1)
                for i in T.Parallel(block_M):
                    d[i] += b[i] + e[i]
            for i in T.Parallel(block_M):
                Y[bx * block_M + i, 0] = a[i, 0]
            for i in T.Parallel(block_M):
                Y[bx * block_M + i, 1] = b[i]
                Y[bx * block_M + i, 2] = c[i]
                Y[bx * block_M + i, 3] = d[i]
                Y[bx * block_M + i, 4] = e[i]
                Y[bx * block_M + i, 5] = i

    return main
