# Matrix product in half precision that schedules itself, for Hopper: one warpgroup loads tiles by TMA,
# two multiply them by wgmma, and barriers in shared memory hand the tiles over.

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_warp_specialized(
    M,
    N,
    K,
    block_M=128,
    block_N=256,
    block_K=64,
    num_stages=3,
    dtype="float16",
    accum_dtype="float32",
):
    """C = A @ B"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=384) as (bx, by):
            A_shared = T.alloc_shared((num_stages, block_M, block_K), dtype)
            B_shared = T.alloc_shared((num_stages, block_K, block_N), dtype)
            C_shared = T.alloc_shared((block_M, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            # A stage is full when its tiles have arrived, and empty when both consumers have read them.
            full = T.alloc_barrier([128] * num_stages)
            empty = T.alloc_barrier([2] * num_stages)

            T.use_swizzle(panel_size=8)
            tx = T.get_thread_binding()
            if tx < 128:  # the producer
                T.set_max_nreg(40, 0)
                for ko in T.serial(T.ceildiv(K, block_K)):
                    # The first round through the stages finds them empty.
                    T.barrier_wait(empty[ko % num_stages], (ko // num_stages + 1) % 2)
                    T.tma_copy(
                        A[by * block_M : (by + 1) * block_M, ko * block_K : (ko + 1) * block_K],
                        A_shared[ko % num_stages, :, :],
                        barrier=full[ko % num_stages],
                    )
                    T.tma_copy(
                        B[ko * block_K : (ko + 1) * block_K, bx * block_N : (bx + 1) * block_N],
                        B_shared[ko % num_stages, :, :],
                        barrier=full[ko % num_stages],
                    )
                    T.barrier_arrive(full[ko % num_stages])
            else:  # the consumers, each with half of the rows
                T.set_max_nreg(232, 1)
                T.clear(C_local)
                for ko in T.serial(T.ceildiv(K, block_K)):
                    T.barrier_wait(full[ko % num_stages], ko // num_stages % 2)
                    T.gemm(
                        A_shared[ko % num_stages, :, :], B_shared[ko % num_stages, :, :], C_local
                    )
                    if T.shuffle_elect(128):  # one thread of each consumer
                        T.barrier_arrive(empty[ko % num_stages])

                T.copy(C_local, C_shared)
                T.fence_proxy_async()  # TMA is to see what the threads have written
                T.sync_threads(1, 256)
                T.tma_copy(C_shared, C[by * block_M, bx * block_N])
                T.tma_store_arrive()
                T.tma_store_wait(0)

    return main


def main():
    import torch

    kernel = gemm_warp_specialized(T.dynamic("M"), T.dynamic("N"), T.dynamic("K"))
    for M, N, K in ((8192, 8192, 8192), (1000, 1024, 776)):
        a = torch.randn(M, K, device="cuda", dtype=torch.float16)
        b = torch.randn(K, N, device="cuda", dtype=torch.float16)
        torch.testing.assert_close(kernel(a, b), a @ b, rtol=1e-2, atol=1e-2)
    print("gemm_warp_specialized: equal to torch")


if __name__ == "__main__":
    main()
