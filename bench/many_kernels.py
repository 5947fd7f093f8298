"""How long a file of many kernels takes, and how much memory: both grow linearly.

    python bench/many_kernels.py            # 10, 50, 100 kernels
    python bench/many_kernels.py 50 200

Each count is one process of the command. Half of the kernels are products with a pipelined loop, half are
reductions; no two are the same text. A file of 50 takes under 10 s on an idle machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEAD = "import tilelang\nimport tilelang.language as T\n\n"
PRODUCT = """
@tilelang.jit
def product_{n}(M, N, K, block_M=64, block_N=64, block_K=32):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_M, block_K), "float16")
            b = T.alloc_shared((block_K, block_N), "float16")
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages={stages}):
                T.copy(A[by * block_M, k * block_K], a)
                T.copy(B[k * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(block_M, block_N):
                c[i, j] = T.max(c[i, j] * {n}.5, 0)
            T.copy(c, C[by * block_M, bx * block_N])

    return main

"""
REDUCTION = """
@tilelang.jit
def reduction_{n}(M, N={width}, block_M=4):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            y = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.exp(x[i, j] * {n}.25)
            T.reduce_sum(x, y, dim=1)
            T.copy(y, Y[bx * block_M])

    return main

"""


def source(count: int) -> str:
    """A file of `count` kernels."""
    parts = [HEAD]
    for n in range(count):
        if n % 2:
            parts.append(REDUCTION.format(n=n, width=128 + 8 * n))
        else:
            parts.append(PRODUCT.format(n=n, stages=2 + n // 2 % 3))
    return "".join(parts)


def measured(count: int) -> tuple[float, float, float]:
    """Seconds on the clock and of the processor, and MiB, of one run of the command."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "many.py")
        path.write_text(source(count), encoding="utf-8")
        command = [sys.executable, "-m", "tile2c", str(path), "-o", str(Path(folder, "out"))]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert process.stderr is not None
        told = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            raise SystemExit(f"the command failed:\n{told}")
        written = len(list(Path(folder, "out").glob("*.cu")))
        assert written == count, f"{written} of {count} kernels were written"
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    counts = [int(text) for text in sys.argv[1:]] or [10, 50, 100]
    print(f"{'kernels':>8} {'seconds':>8} {'processor':>10} {'s a kernel':>11} {'MiB':>6}")
    for count in counts:
        seconds, busy, memory = measured(count)
        print(f"{count:8} {seconds:8.2f} {busy:10.2f} {busy / count:11.3f} {memory:6.0f}")


if __name__ == "__main__":
    main()
