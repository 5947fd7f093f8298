# ruff: noqa: E501 (regions of the normal form are written on one line)
"""The five samples in normal form."""

ADD = """
N = T.dynamic("N")
block_N = 1024


# Adds.
@T.prim_func
def add(A: T.Tensor((N,), T.float32), B: T.Tensor((N,), T.float32), C: T.Tensor((N,), T.float32)):
    with T.Kernel(T.ceildiv(N, block_N), threads=256) as bx:
        for i in T.Parallel(block_N):  # each element once
            C[bx * block_N + i] = A[bx * block_N + i] + B[bx * block_N + i]
"""

ROW_SUM = """
M = T.dynamic("M")
N = T.dynamic("N")
block_M = 8
block_N = 512

@T.prim_func
def row_sum(X: T.Tensor((M, N), T.float32), Y: T.Tensor((M,), T.float32)):
    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        tile = T.alloc_fragment((block_M, block_N), T.float32)
        sums = T.alloc_fragment((block_M,), T.float32)
        T.fill(sums[0:block_M], 0)
        for ko in T.serial(0, T.ceildiv(N, block_N)):
            # Columns past N arrive as zeros and do not change the sums.
            T.copy(X[bx * block_M:bx * block_M + block_M, ko * block_N:ko * block_N + block_N], tile[0:block_M, 0:block_N])
            T.reduce_sum(tile[0:block_M, 0:block_N], sums[0:block_M], dim=1, clear=False)
        T.copy(sums[0:block_M], Y[bx * block_M:bx * block_M + block_M])
"""

SOFTMAX = """
M = T.dynamic("M")
LOG2_E = 1.44269504
N = 8192
block_M = 1

@T.prim_func
def softmax(X: T.Tensor((M, N), T.float16), Y: T.Tensor((M, N), T.float16)):
    with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
        x = T.alloc_fragment((block_M, N), T.float32)
        row_max = T.alloc_fragment((block_M,), T.float32)
        row_sum = T.alloc_fragment((block_M,), T.float32)
        T.copy(X[bx * block_M:bx * block_M + block_M, 0:N], x[0:block_M, 0:N])
        # With the largest element of its row taken off, no exponential can overflow.
        T.reduce_max(x[0:block_M, 0:N], row_max[0:block_M], dim=1, clear=True)
        for i, j in T.Parallel(block_M, N):
            x[i, j] = T.exp2((x[i, j] - row_max[i]) * LOG2_E)
        T.reduce_sum(x[0:block_M, 0:N], row_sum[0:block_M], dim=1, clear=True)
        for i, j in T.Parallel(block_M, N):
            x[i, j] = x[i, j] / row_sum[i]
        T.copy(x[0:block_M, 0:N], Y[bx * block_M:bx * block_M + block_M, 0:N])
"""

GEMM = """
M = T.dynamic("M")
N = T.dynamic("N")
K = T.dynamic("K")
block_M = 128
block_N = 128
block_K = 32


@T.prim_func
def gemm(
    A: T.Tensor((M, K), T.float16),
    B: T.Tensor((K, N), T.float16),
    C: T.Tensor((M, N), T.float16),
):
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        T.use_swizzle(10)
        A_shared = T.alloc_shared((block_M, block_K), T.float16)
        B_shared = T.alloc_shared((block_K, block_N), T.float16)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.fill(C_local[0:block_M, 0:block_N], 0)
        for ko in T.Pipelined(0, T.ceildiv(K, block_K), num_stages=3):
            T.copy(A[by * block_M:by * block_M + block_M, ko * block_K:ko * block_K + block_K], A_shared[0:block_M, 0:block_K])
            T.copy(B[ko * block_K:ko * block_K + block_K, bx * block_N:bx * block_N + block_N], B_shared[0:block_K, 0:block_N])
            T.gemm(A_shared[0:block_M, 0:block_K], B_shared[0:block_K, 0:block_N], C_local[0:block_M, 0:block_N])
        T.copy(C_local[0:block_M, 0:block_N], C[by * block_M:by * block_M + block_M, bx * block_N:bx * block_N + block_N])
"""

GEMM_BIAS_RELU = (
    GEMM.replace("def gemm(", "def gemm_bias_relu(")
    .replace("    C: T.Tensor", "    bias: T.Tensor((N,), T.float16),\n    C: T.Tensor")
    .replace(
        "        T.copy(C_local",
        "        # Bias and activation are applied while the sums are still in registers.\n"
        "        for i, j in T.Parallel(block_M, block_N):\n"
        "            C_local[i, j] = T.max(C_local[i, j] + bias[bx * block_N + j], 0)\n"
        "        T.copy(C_local",
    )
)

ALL = {
    "add": ADD,
    "row_sum": ROW_SUM,
    "softmax": SOFTMAX,
    "gemm": GEMM,
    "gemm_bias_relu": GEMM_BIAS_RELU,
}
