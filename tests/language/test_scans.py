"""T.cumsum and T.cummax (language.md 11): any dimension, shared tiles and fragments, any threads."""

from __future__ import annotations

from pathlib import Path

import pytest
from language_programs import CUDA, HIP, checked, empty, values

CASES = [
    (CUDA, 24, (5, 33), 1, False, "cumsum"), (CUDA, 160, (8, 40), 1, True, "cumsum"),
    (CUDA, 96, (70, 7), 0, False, "cummax"), (CUDA, 128, (3, 100), 1, False, "cummax"),
    (HIP, 128, (3, 100), 1, True, "cummax"), (HIP, 256, (40, 33), 0, False, "cumsum"),
    (CUDA, 31, (2, 9), 1, False, "cumsum"), (CUDA, 256, (300, 8), 1, True, "cumsum"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "threads", "shape", "dim", "reverse", "op"), CASES)
def test_scans(
    tmp_path: Path, target: str, threads: int, shape: tuple[int, int], dim: int, reverse: bool,
    op: str,
) -> None:  # fmt: skip
    text = f"""
@T.prim_func
def main(
    X: T.Tensor({shape}, "float32"), A: T.Tensor({shape}, "float32"),
    B: T.Tensor({shape}, "float32"), C: T.Tensor({shape}, "float32"),
):
    with T.Kernel(1, threads={threads}) as bx:
        s = T.alloc_shared({shape}, "float32")
        t = T.alloc_shared({shape}, "float32")
        f = T.alloc_fragment({shape}, "float32")
        g = T.alloc_fragment({shape}, "float32")
        T.copy(X, s)
        T.{op}(s, t, dim={dim}, reverse={reverse})
        T.copy(t, A)
        T.copy(X, f)
        T.{op}(f, g, dim={dim}, reverse={reverse})
        T.copy(g, B)
        T.{op}(s, dim={dim}, reverse={reverse})
        T.{op}(s, f, dim={1 - dim})
        T.copy(f, C)
"""
    arguments = {"X": values(shape)} | {name: empty(shape) for name in "ABC"}
    checked(tmp_path, text, arguments, target, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("dtype", ["int32", "float16", "int64"])
def test_scans_of_regions_and_private_arrays(tmp_path: Path, target: str, dtype: str) -> None:
    text = f"""
@T.prim_func
def main(X: T.Tensor((8, 40), "{dtype}"), A: T.Tensor((8, 24), "{dtype}"),
         B: T.Tensor((6,), "{dtype}")):
    with T.Kernel(1, threads=64) as bx:
        s = T.alloc_shared((8, 40), "{dtype}")
        t = T.alloc_shared((8, 24), "{dtype}")
        p = T.alloc_local((6,), "{dtype}")
        T.copy(X, s)
        T.cumsum(s[0:8, 3:27], t, dim=1)
        T.copy(t, A)
        for i in T.serial(6):
            p[i] = X[i, i]
        T.cummax(p, dim=0, reverse=True)
        for i in T.serial(6):
            B[i] = p[i]
"""
    arguments = {
        "X": values((8, 40), dtype),
        "A": empty((8, 24), dtype),
        "B": empty(6, dtype),
    }
    checked(tmp_path, text, arguments, target, rtol=1e-2, atol=1e-2)
