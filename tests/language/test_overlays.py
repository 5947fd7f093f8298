"""Shared tiles that do not fit side by side lie in the same bytes, one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from language_programs import CUDA, HIP, checked, empty, values, written_text


@pytest.mark.parametrize(("target", "rows"), [(CUDA, 160), (HIP, 48)])
def test_a_result_in_the_bytes_of_an_operand(tmp_path: Path, target: str, rows: int) -> None:
    """Both tiles together are larger than what a block has; so are the parts of two reductions."""
    text = f"""
@T.prim_func
def main(
    X: T.Tensor(({rows}, 256), "float32"), O: T.Tensor(({rows}, 256), "float32"),
    S: T.Tensor(({rows},), "float32"),
):
    with T.Kernel(1, threads=256) as bx:
        x = T.alloc_shared(({rows}, 256), "float32")
        o = T.alloc_shared(({rows}, 256), "float32")
        s = T.alloc_shared(({rows},), "float32")
        f = T.alloc_fragment(({rows}, 256), "float32")
        r = T.alloc_fragment(({rows},), "float32")
        T.copy(X, x)
        T.copy(x, f)
        T.reduce_sum(f, r, dim=1)
        T.copy(r, s)
        for i, j in T.Parallel({rows}, 256):
            f[i, j] = x[i, 255 - j] * s[i]
        T.copy(f, o)
        for i, j in T.Parallel({rows}, 256):
            O[i, j] = o[i, 255 - j] + 1
        T.copy(s, S)
"""
    arguments = {"X": values((rows, 256)), "O": empty((rows, 256)), "S": empty(rows)}
    checked(tmp_path, text, arguments, target, rtol=1e-3)
    assert "union {" in written_text(tmp_path / "out")


@pytest.mark.parametrize(("target", "rows"), [(CUDA, 128), (HIP, 40)])
def test_what_comes_later_may_be_larger(tmp_path: Path, target: str, rows: int) -> None:
    """A tile between them starts behind the larger of the two that share bytes."""
    text = f"""
@T.prim_func
def main(
    X: T.Tensor(({rows}, 256), "float16"), Q: T.Tensor(({rows}, 128), "float16"),
    O: T.Tensor(({rows}, 256), "float32"),
):
    with T.Kernel(1, threads=256) as bx:
        x = T.alloc_shared(({rows}, 256), "float16")
        q = T.alloc_shared(({rows}, 128), "float16")
        o = T.alloc_shared(({rows}, 256), "float32")
        f = T.alloc_fragment(({rows}, 256), "float32")
        T.copy(X, x)
        T.copy(Q, q)
        for i, j in T.Parallel({rows}, 256):
            f[i, j] = x[i, 255 - j] * 2
        T.copy(f, o)
        for i, j in T.Parallel({rows}, 256):
            O[i, j] = o[i, 255 - j] + q[i, j % 128]
"""
    arguments = {
        "X": values((rows, 256), "float16"),
        "Q": values((rows, 128), "float16"),
        "O": empty((rows, 256)),
    }
    checked(tmp_path, text, arguments, target, rtol=1e-3)
    assert "union {" in written_text(tmp_path / "out")
