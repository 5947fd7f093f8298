"""Public reports on conversions, number rules, large indices and atomics, as programs."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, refusal, text_of, values
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as same

BOTH = pytest.mark.parametrize("target", [CUDA, HIP])


def elementwise(inputs: str, output: str, count: int, statements: str, threads: int = 32) -> str:
    body = statements.replace("\n", "\n            ")
    return f"""
@T.prim_func
def main({inputs}, O: T.Tensor(({count},), "{output}")):
    with T.Kernel(1, threads={threads}) as bx:
        for i in T.Parallel({count}):
            {body}
"""


@BOTH
def test_h46_h47_signed_fields_of_bits(tmp_path: Path, target: str) -> None:
    """`<<` on int8 keeps eight bits, so that `>>` extends the sign; so do fields of a word."""
    text = """
@T.prim_func
def main(
    A: T.Tensor((16,), "uint8"),
    W: T.Tensor((2,), "uint32"),
    O: T.Tensor((32,), "int8"),
    F: T.Tensor((16,), "float32"),
):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(32):
            n = T.cast((A[i // 2] >> ((i % 2) * 4)) & 15, "int8")
            O[i] = (n << 4) >> 4
        for i in T.Parallel(16):
            word = T.cast(W[i // 8] << (28 - i % 8 * 4), "int32")
            F[i] = T.cast(word >> 28, "float32")
"""
    nibbles = np.arange(16)
    words = np.array([0x76543210, 0xFEDCBA98], np.uint32)
    arguments = {
        "A": (nibbles * 17).astype(np.uint8),
        "W": words,
        "O": empty(32, "int8"),
        "F": empty(16),
    }
    found = checked(tmp_path, text, arguments, target)
    signed = np.where(nibbles < 8, nibbles, nibbles - 16)
    same(found["O"], np.repeat(signed, 2))
    same(found["F"], signed)


@BOTH
def test_h48_h49_ties_go_to_even(tmp_path: Path, target: str) -> None:
    """The same on every target, in bfloat16 and float32."""
    for dtype in ("bfloat16", "float32"):
        folder = tmp_path / dtype
        folder.mkdir()
        text = elementwise(f'A: T.Tensor((4,), "{dtype}")', dtype, 4, "O[i] = T.round(A[i])")
        a = np.array([0.5, 1.5, -0.5, -2.5]).astype(
            ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
        )
        found = checked(folder, text, {"A": a, "O": empty(4, dtype)}, target)["O"]
        same(found.astype(float), [0, 2, -0.0, -2])


def test_h50_constants_out_of_range(tmp_path: Path) -> None:
    """An explicit conversion wraps."""
    text = """
@T.prim_func
def main(O: T.Tensor((1,), "int8"), Q: T.Tensor((1,), "uint8")):
    with T.Kernel(1, threads=1) as bx:
        O[0] = T.cast(300, "int8")
        Q[0] = T.cast(-1, "uint8")
"""
    found = checked(tmp_path, text, {"O": empty(1, "int8"), "Q": empty(1, "uint8", 0)})
    same(found["O"], [44])
    same(found["Q"], [255])


@BOTH
def test_h51_sums_that_wrap(tmp_path: Path, target: str) -> None:
    text = elementwise(
        'A: T.Tensor((2,), "int32")', "int32", 2, "O[i] = (A[i] + 1500000000) + 1500000000"
    )
    a = np.array([0, -1500000000], np.int32)
    found = checked(tmp_path, text, {"A": a, "O": empty(2, "int32")}, target)["O"]
    same(found, [-1294967296, 1500000000])


@BOTH
def test_h52_floor_division_of_negatives(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def main(
    A: T.Tensor((6,), "int32"),
    B: T.Tensor((6,), "int32"),
    Q: T.Tensor((6,), "int32"),
    R: T.Tensor((6,), "int32"),
):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(6):
            Q[i] = A[i] // B[i]
            R[i] = A[i] % B[i]
"""
    arguments = {
        "A": np.array([-7, 7, -7, -8, 8, 0], np.int32),
        "B": np.array([3, -3, -3, 4, -4, 5], np.int32),
        "Q": empty(6, "int32"),
        "R": empty(6, "int32"),
    }
    found = checked(tmp_path, text, arguments, target)
    same(found["Q"], [-3, -3, 2, -2, -2, 0])
    same(found["R"], [2, -2, -1, 0, 0, 0])


def test_h53_a_ring_index(tmp_path: Path) -> None:
    text = elementwise('A: T.Tensor((16,), "int32")', "int32", 16, "O[i] = A[(i - 3) % 16]")
    a = np.arange(16, dtype=np.int32)
    same(checked(tmp_path, text, {"A": a, "O": empty(16, "int32")})["O"], np.roll(a, 3))


@BOTH
def test_h54_ceiling_division_by_negatives(tmp_path: Path, target: str) -> None:
    text = elementwise(
        'A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")', "int32", 4,
        "O[i] = T.ceildiv(A[i], B[i])",
    )  # fmt: skip
    a, b = np.array([9, 8, -9, 9], np.int32), np.array([-4, -4, 4, 4], np.int32)
    found = checked(tmp_path, text, {"A": a, "B": b, "O": empty(4, "int32")}, target)["O"]
    same(found, [-2, -2, -2, 3])


@BOTH
def test_h55_accurate_functions_by_default(tmp_path: Path, target: str) -> None:
    text = elementwise(
        'X: T.Tensor((200,), "float32"), Y: T.Tensor((200,), "float32")', "float32", 200,
        "O[i] = T.tan(X[i])\nY[i] = T.exp2(X[i] * 1.4426950408889634)",
    )  # fmt: skip
    x = np.linspace(-10, 10, 200, dtype=np.float32)
    found = checked(
        tmp_path, text, {"X": x, "Y": empty(200), "O": empty(200)}, target, rtol=1e-4, atol=1e-4
    )
    close(found["Y"], np.exp(x), 4e-6)
    assert "tanf(" in text_of(tmp_path, text, target)


def test_h56_an_index_of_64_bits(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(
    P: T.Tensor((8,), "int64"),
    S: T.Tensor((8, 32), "float32"),
    C: T.Tensor((1024, 32), "float32"),
):
    with T.Kernel(8, threads=32) as b:
        for j in T.Parallel(32):
            C[P[b], j] = S[b, j]
"""
    places = np.array([5, 1023, 0, 77, 500, 501, 3, 900], np.int64)
    s = values((8, 32))
    found = checked(tmp_path, text, {"P": places, "S": s, "C": empty((1024, 32))})["C"]
    same(found[places], s)


def test_h57_h58_offsets_beyond_32_bits(tmp_path: Path) -> None:
    """A row times its stride is computed in 64 bits."""
    text = """
@T.prim_func
def main(
    R: T.Tensor((4,), "int32"),
    X: T.Tensor((20000, 131072), "int8"),
    O: T.Tensor((4, 64), "int8"),
):
    with T.Kernel(4, threads=64) as b:
        for j in T.Parallel(64):
            O[b, j] = X[R[b], j]
"""
    assert "size_t(" in text_of(tmp_path, text)


@BOTH
@pytest.mark.parametrize("cast", [True, False])
def test_h77_atomics_convert_their_value(tmp_path: Path, target: str, cast: bool) -> None:
    value = 'T.cast(A[i], "float16")' if cast else "A[i]"
    text = f"""
@T.prim_func
def main(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float16")):
    with T.Kernel(4, threads=32) as bx:
        for i in T.Parallel(64):
            T.atomic_add(O[i], {value})
"""
    a = np.arange(64, dtype=np.float32) / 8
    same(checked(tmp_path, text, {"A": a, "O": empty(64, "float16", 0)}, target)["O"], 4 * a)


@BOTH
@pytest.mark.parametrize("dtype", ["int32", "float16", "bfloat16"])
def test_h78_four_atomics_of_any_type(tmp_path: Path, target: str, dtype: str) -> None:
    text = f"""
@T.prim_func
def main(A: T.Tensor((8,), "{dtype}"), O: T.Tensor((8,), "{dtype}")):
    with T.Kernel(2, threads=2) as bx:
        for i in T.Parallel(2):
            T.atomic_addx4(O[i * 4], A[i * 4])
"""
    a = values(8, "int32").astype(int) * 0 + np.arange(1, 9)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    found = checked(tmp_path, text, {"A": a.astype(kind), "O": empty(8, dtype, 0)}, target)["O"]
    same(found.astype(float), 2 * np.arange(1, 9))


def test_h79_a_number_on_a_whole_tile(tmp_path: Path) -> None:
    """Refused: it asks for the element."""
    text = """
@T.prim_func
def main(A: T.Tensor((96,), "int32"), M: T.Tensor((1,), "int32")):
    with T.Kernel(1, threads=96) as bx:
        tx = T.get_thread_binding()
        T.atomic_max({target}, A[tx])
"""
    assert "as in M[0]" in refusal(tmp_path, text.format(target="M"))
    a = values(96, "int32")
    found = checked(tmp_path, text.format(target="M[0]"), {"A": a, "M": empty(1, "int32", -99)})
    same(found["M"], [a.max()])
