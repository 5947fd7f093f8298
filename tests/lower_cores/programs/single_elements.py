import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def single_elements(block_N=64):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), alpha: T.float32, Y: T.Tensor((M,), "float32")):
        with T.Kernel(M, threads=128) as bx:
            x = T.alloc_fragment((block_N,), "float32")
            s = T.alloc_fragment((1,), "float32")
            best = T.alloc_fragment((1,), "float32")
            count = T.alloc_var("int32")
            count = 0
            best[0] = -1000.0
            for ko in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx, ko * block_N : (ko + 1) * block_N], x)
                T.reduce_sum(x, s, dim=0)
                if s[0] > best[0]:
                    best[0] = s[0]
                    count = count + 1
            best[0] = best[0] * alpha + T.cast(count, "float32")
            Y[bx] = best[0]

    return main
