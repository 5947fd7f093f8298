"""T.import_source and T.call_extern: the program's own C text and calls of its functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tile2c
from language_programs import CUDA, HIP, written

PROGRAM = '''
source = """
static __device__ float twice(float x) { return 2 * x; }
static __device__ void add(float* x, const float* y, int n) {
    for (int i = 0; i < n; ++i) x[i] += y[i];
}
"""


@T.prim_func
def main(X: T.Tensor((64, 32), "float32"), Y: T.Tensor((64, 32), "float32")):
    with T.Kernel(2, threads=32) as bx:
        T.import_source(source)
        tx = T.get_thread_binding()
        x = T.alloc_local((32,), "float32")
        for j in range(32):
            x[j] = T.call_extern("float32", "twice", X[bx * 32 + tx, j])
        T.call_extern("handle", "add", T.address_of(x[16]), X.access_ptr("r"), 16)
        T.call_extern("handle", "add", x.data, T.address_of(X[bx * 32 + tx, 0]), 8)
        for j in range(32):
            Y[bx * 32 + tx, j] = x[j]
'''


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_functions_of_the_programs_own_text(tmp_path: Path, target: str) -> None:
    path = written(tmp_path, PROGRAM)
    (kernel,) = tile2c.build(
        path, tmp_path / "out", target, backend="emulate", check="races,memory"
    ).values()
    x = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    y = np.zeros_like(x)
    kernel(X=x, Y=y)
    wanted = 2 * x
    wanted[:, 16:] += x[0, :16]
    wanted[:, :8] += x[:, :8]
    np.testing.assert_array_equal(y, wanted)


def test_the_text_may_stand_in_the_launch(tmp_path: Path) -> None:
    text = PROGRAM.replace("threads=32)", "threads=32, prelude=source)")
    path = written(tmp_path, text.replace("        T.import_source(source)\n", ""))
    tile2c.build(path, tmp_path / "out", CUDA, backend="emulate")
    assert (tmp_path / "out" / "program.cu").read_text().count("float twice(float x)") == 1


def test_a_shared_tile_is_not_handed_out(tmp_path: Path) -> None:
    text = PROGRAM.replace("alloc_local", "alloc_shared")
    with pytest.raises(tile2c.TranspileError, match="x is a shared tile, whose elements lie as"):
        tile2c.build(written(tmp_path, text), tmp_path / "out", CUDA, backend="emulate")
