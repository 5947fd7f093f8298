import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def control(block_N=64):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), n: T.int32, Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=128) as bx:
            x = T.alloc_fragment((block_N,), "float32")
            y = T.alloc_fragment((block_N,), "float32")
            left = T.alloc_var("int32")
            for ko in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx, ko * block_N], x)
                T.clear(y)
                left = n
                while left > 0:
                    for i in T.Parallel(block_N):
                        y[i] += x[i] * T.cast(left, "float32")
                    left = left - 1
                if ko % 2 == 1:
                    for i in T.Parallel(block_N):
                        y[i] = y[i] + X[bx, 0]
                for k in T.serial(3):
                    if k == 2:
                        break
                    for i in T.Parallel(block_N):
                        y[i] = y[i] * 2
                T.copy(y, Y[bx, ko * block_N])

    return main
