"""The samples: what their normal forms say, and that normalizing twice changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.read import read_source
from tile2c.transpile.stage import NormalKernel, normalize, parse_defines

SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = ("add", "row_sum", "softmax", "gemm", "gemm_bias_relu")


def normal(path: Path, *options: str) -> NormalKernel:
    diagnostics = Diagnostics()
    source = read_source(path, diagnostics)
    assert source is not None
    (kernel,) = normalize(source, parse_defines(options), (), diagnostics)
    assert not diagnostics.items
    return kernel


@pytest.mark.parametrize("name", NAMES)
def test_twice_equals_once(name: str, tmp_path: Path) -> None:
    kernel = normal(SAMPLES / f"{name}.py")
    path = tmp_path / f"{name}.tile.py"
    path.write_text(kernel.text)
    assert normal(path).text == kernel.text
    compile(kernel.text, str(path), "exec")


@pytest.mark.parametrize("name", NAMES)
def test_every_statement_has_an_origin(name: str) -> None:
    import libcst as cst

    kernel = normal(SAMPLES / f"{name}.py")
    function = kernel.module.body[-1]
    assert isinstance(function, cst.FunctionDef)
    pending = list(function.body.body)
    while pending:
        node = pending.pop()
        assert kernel.origins[node].quote
        if isinstance(node, cst.BaseCompoundStatement):
            pending += node.body.body


def test_gemm() -> None:
    kernel = normal(SAMPLES / "gemm.py")
    assert kernel.sizes == ("M", "N", "K")
    assert kernel.parameters == {
        "block_M": 128,
        "block_N": 128,
        "block_K": 32,
        "num_stages": 3,
        "threads": 128,
        "dtype": "float16",
        "accum_dtype": "float32",
    }
    assert (kernel.name, kernel.function, kernel.summary) == ("gemm", "main", "C = A @ B")
    assert kernel.text == GEMM


GEMM = """\
import tilelang.language as T

M = T.dynamic("M")
N = T.dynamic("N")
K = T.dynamic("K")
block_M = 128
block_N = 128
block_K = 32
num_stages = 3
threads = 128


# C = A @ B
@T.prim_func
def gemm(
    A: T.Tensor((M, K), T.float16),
    B: T.Tensor((K, N), T.float16),
    C: T.Tensor((M, N), T.float16),
):
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
        # Neighbouring blocks share rows of A and columns of B while these are in the cache.
        T.use_swizzle(10, order="row")
        A_shared = T.alloc_shared((block_M, block_K), T.float16)
        B_shared = T.alloc_shared((block_K, block_N), T.float16)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.fill(C_local[0:block_M, 0:block_N], 0)
        for ko in T.Pipelined(0, T.ceildiv(K, block_K), num_stages=num_stages):
            T.copy(A[by * block_M:by * block_M + block_M, ko * block_K:ko * block_K + block_K], A_shared[0:block_M, 0:block_K])
            T.copy(B[ko * block_K:ko * block_K + block_K, bx * block_N:bx * block_N + block_N], B_shared[0:block_K, 0:block_N])
            T.gemm(A_shared[0:block_M, 0:block_K], B_shared[0:block_K, 0:block_N], C_local[0:block_M, 0:block_N])
        T.copy(C_local[0:block_M, 0:block_N], C[by * block_M:by * block_M + block_M, bx * block_N:bx * block_N + block_N])
"""  # noqa: E501


def test_quotes_are_the_authors() -> None:
    kernel = normal(SAMPLES / "gemm.py")
    quotes = {origin.quote for origin in kernel.origins.values()}
    assert "T.clear(C_local)" in quotes
    assert "for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages)" in quotes


def test_sizes_can_be_fixed_and_freed() -> None:
    fixed = normal(SAMPLES / "gemm.py", "N=4096", "gemm.K=1024", "block_M=64", "M%16=0")
    assert fixed.sizes == ("M",) and fixed.promises == {"M": 16}
    assert "N = 4096\n" in fixed.text and "K = 1024\n" in fixed.text
    assert normal(SAMPLES / "softmax.py").parameters["N"] == 8192
    assert normal(SAMPLES / "softmax.py", "N=1000").parameters["N"] == 1000
    assert normal(SAMPLES / "add.py", "dtype=float16").parameters["dtype"] == "float16"
