"""T.cumsum and T.cummax (language.md 11): any dimension, shared tiles and fragments, any threads."""

from __future__ import annotations

from pathlib import Path

import pytest
from language_programs import CUDA, HIP, checked, empty, values, written_text

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


def along_rows(
    shape: tuple[int, int], dtype: str, op: str, threads: int, dim: int = 1, more: str = ""
) -> str:
    return f"""
@T.prim_func
def main(X: T.Tensor({shape}, "{dtype}"), A: T.Tensor({shape}, "{dtype}"),
         B: T.Tensor({shape}, "{dtype}")):
    with T.Kernel(1, threads={threads}) as bx:
        f = T.alloc_fragment({shape}, "{dtype}")
        g = T.alloc_fragment({shape}, "{dtype}")
        T.copy(X, f)
        T.{op}(f, g, dim={dim}{more})
        T.{op}(f, dim={dim}{more})
        T.copy(f, A)
        T.copy(g, B)
"""


@pytest.mark.parametrize(
    ("shape", "dtype", "op", "threads", "target"),
    [
        ((4, 512), "float32", "cumsum", 128, CUDA), ((4, 500), "float32", "cummax", 128, CUDA),
        ((3, 77), "float16", "cumsum", 64, CUDA), ((8, 64), "int8", "cumsum", 256, CUDA),
        ((32, 16), "int64", "cumsum", 64, CUDA), ((9, 5), "float32", "cumsum", 32, CUDA),
        ((4, 512), "float32", "cumsum", 256, HIP), ((6, 96), "int16", "cummax", 128, HIP),
        ((128, 4), "float32", "cumsum", 128, CUDA),
    ],
)  # fmt: skip
def test_rows_of_fragments_stay_in_registers(
    tmp_path: Path, shape: tuple[int, int], dtype: str, op: str, threads: int, target: str
) -> None:
    text = along_rows(shape, dtype, op, threads)
    arguments = {"X": values(shape, dtype), "A": empty(shape, dtype), "B": empty(shape, dtype)}
    checked(tmp_path, text, arguments, target, rtol=1e-2, atol=1e-2)
    assert "__shared__" not in written_text(tmp_path / "out")


@pytest.mark.parametrize(
    ("shape", "threads", "dim", "more"),
    [((2, 512), 128, 1, ""), ((4, 64), 128, 0, ""), ((4, 512), 128, 1, ", reverse=True")],
)
def test_other_scans_of_fragments_go_through_shared_memory(
    tmp_path: Path, shape: tuple[int, int], threads: int, dim: int, more: str
) -> None:
    text = along_rows(shape, "float32", "cumsum", threads, dim, more)
    arguments = {"X": values(shape), "A": empty(shape), "B": empty(shape)}
    checked(tmp_path, text, arguments, CUDA, rtol=1e-4, atol=1e-4)
