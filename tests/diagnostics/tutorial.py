# The fused gemm as tutorials spelled it: serial loops over blocks, T.load and T.store, no types.
import tilelang as tl
from tilelang.language import T


@tl.jit
def make(
    M, N, K, block_M=128, block_N=128, block_K=32, num_stages=3, dtype="float16", accum="float32"
):
    @T.prim_func
    def gemm_bias_relu(A, B, bias, C):
        for by in T.serial(T.ceildiv(M, block_M)):
            for bx in T.serial(T.ceildiv(N, block_N)):
                A_shared = T.alloc_shared((block_M, block_K), dtype)
                B_shared = T.alloc_shared((block_K, block_N), dtype)
                C_local = T.alloc_fragment((block_M, block_N), accum)

                T.clear(C_local)
                for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                    T.copy(A[by * block_M, ko * block_K], A_shared)
                    T.copy(B[ko * block_K, bx * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local)

                # Bias and activation are applied while the sums are still in registers.
                for i, j in T.Parallel(block_M, block_N):
                    T.store(
                        C_local, i, T.max(T.load(C_local, i) + T.load(bias, bx * block_N + j), 0)
                    )

                T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm_bias_relu
