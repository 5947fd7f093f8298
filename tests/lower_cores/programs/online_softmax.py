import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def online_softmax(block_M=4, block_N=128):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_shared((block_M, block_N), "float32")
            e = T.alloc_fragment((block_M, block_N), "float32")
            m = T.alloc_fragment((block_M,), "float32")
            m_old = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.fill(m, -T.infinity("float32"))
            T.clear(total)
            for ko in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[bx * block_M, ko * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    e[i, j] = T.if_then_else(ko * block_N + j < N, x[i, j], -T.infinity("float32"))
                T.copy(m, m_old)
                T.reduce_max(e, m, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    e[i, j] = T.exp(e[i, j] - m[i])
                T.reduce_sum(e, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * T.exp(m_old[i] - m[i]) + part[i]
            for ko in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[bx * block_M, ko * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    x[i, j] = T.exp(x[i, j] - m[i]) / total[i]
                T.copy(x, Y[bx * block_M, ko * block_N])

    return main
