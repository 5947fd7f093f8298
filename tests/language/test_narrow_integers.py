"""Integers past the range of their type: the bits above are dropped, on every target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, refusal, text_of, values
from numpy.testing import assert_array_equal

TARGETS = ["cuda:sm_80", "hip:gfx942", "musa:mp_31", "ascendc:ascend910b", "bang:mtp_592"]
PROGRAM = """
@T.prim_func
def main(A: T.Tensor((256,), "{dtype}"), B: T.Tensor((256,), "{to}")):
    with T.Kernel(1, threads=128) as bx:
        one = T.alloc_shared((256,), "{dtype}")
        two = T.alloc_shared((256,), "{to}")
        T.copy(A, one)
        for i in T.Parallel(256):
            two[i] = {value}
        T.copy(two, B)
"""
ONE = """
@T.prim_func
def main(A: T.Tensor((256,), "{dtype}"), B: T.Tensor((256,), "int32")):
    with T.Kernel(1, threads=128) as bx:
        two = T.alloc_shared((256,), "int32")
        T.fill(two, 0)
        x = T.cast(T.abs(A[0]), "int32")
        for i in T.Parallel(256):
            two[i] = two[i] + x
        T.copy(two, B)
"""


def ends(dtype: str) -> np.ndarray:
    """The type's ends, and numbers between."""
    info = np.iinfo(dtype)
    found = np.random.default_rng(0).integers(info.min, info.max, 256, dtype, endpoint=True)
    found[:3] = info.min, info.max, info.min + 1
    found[3:128] //= 2 ** (info.bits // 2 - 1)
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("dtype", "to"), [("int16", "int16"), ("int16", "int32"), ("int8", "int32")]
)
def test_the_absolute_value_has_its_argument_s_type(
    tmp_path: Path, target: str, dtype: str, to: str
) -> None:
    """|-32768| is -32768 again, also where it goes to a wider type."""
    if dtype == "int8" and target.startswith("bang"):
        pytest.skip("bytes are no numbers of its vector unit")
    text = PROGRAM.format(dtype=dtype, to=to, value="T.abs(one[i])")
    found = checked(tmp_path, text, {"A": ends(dtype), "B": empty(256, to, 1)}, target)["B"]
    assert found[0] == np.iinfo(dtype).min and found[2] == np.iinfo(dtype).max


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_of_a_single_number_too(tmp_path: Path, target: str, dtype: str) -> None:
    text = ONE.format(dtype=dtype)
    checked(tmp_path, text, {"A": ends(dtype), "B": empty(256, "int32")}, target)


PAIRS = [
    ("int32", "int16"),
    ("int16", "int8"),
    ("int16", "uint8"),
    ("int8", "uint8"),
    ("uint8", "int8"),
]
REFUSED = {("ascendc", "int8", "uint8"), ("ascendc", "uint8", "int8"), ("bang", "int32", "int16")}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("dtype", "to"), PAIRS)
def test_a_type_that_does_not_hold_them(tmp_path: Path, target: str, dtype: str, to: str) -> None:
    if (target.partition(":")[0], dtype, to) in REFUSED:
        pytest.skip("there is no such conversion")
    text = PROGRAM.format(dtype=dtype, to=to, value="one[i]")
    checked(tmp_path, text, {"A": ends(dtype), "B": empty(256, to, 1)}, target)


COPIED = """
@T.prim_func
def main(A: T.Tensor((256,), "{dtype}"), B: T.Tensor((256,), "{to}"), C: T.Tensor((256,), "{to}")):
    with T.Kernel(1, threads=128) as bx:
        one = T.alloc_shared((256,), "{dtype}")
        two = T.alloc_shared((256,), "{to}")
        three = T.alloc_shared((256,), "{to}")
        T.copy(A, one)
        T.copy(one, two)
        T.copy(two, B)
        T.copy(A, three)
        T.copy(three, C)
"""


@pytest.mark.parametrize("target", ["cuda:sm_80", "ascendc:ascend910b"])
@pytest.mark.parametrize(("dtype", "to"), PAIRS[:3])
def test_copies_are_conversions_too(tmp_path: Path, target: str, dtype: str, to: str) -> None:
    text = COPIED.format(dtype=dtype, to=to)
    given = {"A": ends(dtype), "B": empty(256, to, 1), "C": empty(256, to, 1)}
    checked(tmp_path, text, given, target)


def test_a_copy_that_cannot_convert_is_refused_where_it_stands(tmp_path: Path) -> None:
    told = refusal(tmp_path, COPIED.format(dtype="int32", to="int16"), "bang:mtp_592")
    assert "T2C540" in told and "T.copy(one, two)" in told


@pytest.mark.parametrize("value", ["one[i] + one[i]", "one[i] * one[i]", "-one[i]"])
def test_sums_and_products_of_narrow_ones(tmp_path: Path, value: str) -> None:
    text = PROGRAM.format(dtype="int16", to="int16", value=value)
    checked(tmp_path, text, {"A": ends("int16"), "B": empty(256, "int16")}, "ascendc:ascend910b")


def test_what_is_in_the_range_is_converted_as_it_is(tmp_path: Path) -> None:
    value = "T.cast(T.clamp(one[i], -100, 100), 'int16')"
    text = PROGRAM.format(dtype="int32", to="int16", value=value)
    checked(tmp_path, text, {"A": ends("int32"), "B": empty(256, "int16")}, "ascendc:ascend910b")
    assert "Shift" not in text_of(tmp_path, text, "ascendc:ascend910b")


PLACES = """
@T.prim_func
def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=256) as bx:
        for i in T.Parallel(256):
            B[i] = A[T.cast(T.cast(i, "int8"), "int32")]
"""


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_places_of_a_type_that_does_not_hold_them(tmp_path: Path, target: str) -> None:
    a = values(256)
    found = checked(tmp_path, PLACES, {"A": a, "B": empty(256)}, target)["B"]
    assert_array_equal(found, np.where(np.arange(256) < 128, a, 0))


UNSIGNED = """
@T.prim_func
def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        for i in T.Parallel(128):
            B[i] = 1
            if {condition}:
                B[i] = A[i - 15]
"""


@pytest.mark.parametrize("difference", ['T.cast(i - 5, "uint32")', 'T.cast(i, "uint32") - five'])
def test_what_no_sign_makes_large_proves_nothing(tmp_path: Path, difference: str) -> None:
    condition = f"{difference} >= 10".replace("five", 'T.cast(5, "uint32")')
    a, i = values(128), np.arange(128)
    found = checked(tmp_path, UNSIGNED.format(condition=condition), {"A": a, "B": empty(128)})["B"]
    assert_array_equal(found, np.where(i < 5, 0, np.where(i < 15, 1, a[i - 15])))
