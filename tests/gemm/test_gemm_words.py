"""What gemms say of themselves: warnings with the cost, refusals by name, lines in the head."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from gemm_cases import PROGRAMS

SOURCE = """import tilelang
import tilelang.language as T


@tilelang.jit
def sparse():
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared((64, 32), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.copy(A, A_shared)
            T.clear(C_local)
            T.{name}(A_shared, A_shared, A_shared, C_local)
            T.copy(C_local, C)

    return main
"""


def _said(folder: Path, source: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tile2c", str(source), "-o", str(folder / "out"), *options],
        capture_output=True, text=True, cwd=folder, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-D", "threads=40"), "T2C516]: this gemm is done without the matrix unit, many times slower: "
         "40 threads are no whole warps of 32"),
        (("-D", "block_K=20"), "K is 20, and matrix instructions take multiples of 8"),
        (("-D", "block_M=8"), "2 warps cannot share 8 x 32 in pieces of 16 x 8"),
        (("-D", "dtype=float8_e5m2"), "T2C517]: cuda:sm_80: operands are widened to float16"),
        (("-D", "dtype=bfloat16", "--target", "cuda:sm_75"), "cuda:sm_75 has no matrix instruction for "
         "bfloat16 -> float32"),
    ],
)  # fmt: skip
def test_cost_is_named(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    said = _said(tmp_path, PROGRAMS / "product.py", *options)
    assert words in said
    assert "error" not in said


def test_tf32_is_said_in_the_head(tmp_path: Path) -> None:
    _said(tmp_path, PROGRAMS / "product.py", "-D", "dtype=float32")
    (text,) = (tmp_path / "out").glob("*.cu")
    assert "float32 products are TF32" in text.read_text().split("#include")[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gemm_sp", "T2C559]: T.gemm_sp multiplies by a matrix with 2 of 4 elements left out"),
        ("gemm_blockscaled", "T.gemm_blockscaled is not available"),
        ("tcgen05_gemm", "T.tcgen05_gemm is not available"),
    ],
)
def test_refused_by_name(tmp_path: Path, name: str, words: str) -> None:
    source = tmp_path / "sparse.py"
    source.write_text(SOURCE.replace("{name}", name))
    said = _said(tmp_path, source)
    assert words in said
    assert "sparse.py:14:13" in said
