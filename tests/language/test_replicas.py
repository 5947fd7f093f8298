"""Loops that several threads do alike, and that change what they read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty


@pytest.mark.parametrize(("target", "threads"), [(CUDA, 64), (CUDA, 256), (HIP, 128)])
def test_a_tile_that_is_read_and_stored_by_replicas(
    tmp_path: Path, target: str, threads: int
) -> None:
    """Columns of eight int64 leave threads over: they must not read what another has replaced."""
    text = f"""
@T.prim_func
def main(
    A: T.Tensor((8, 32), "int32"), O: T.Tensor((8, 32), "float16"), S: T.Tensor((8, 32), "int32")
):
    with T.Kernel(1, threads={threads}) as bx:
        s = T.alloc_shared((8, 32), "int32")
        f = T.alloc_fragment((8, 32), "int64")
        T.copy(A, s)
        for i, j in T.Parallel(8, 32):
            f[i, j] = s[i, j] * 2
            if s[i, j] > 3:
                s[i, j] = s[i, j] - 7
        T.copy(f, O)
        T.copy(s, S)
"""
    a = np.arange(256, dtype=np.int32).reshape(8, 32) % 11
    arguments = {"A": a, "O": empty((8, 32), "float16"), "S": empty((8, 32), "int32")}
    checked(tmp_path, text, arguments, target)
