"""Copies of lengths and from starts that only the running kernel knows, on both kinds of NPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cores_harness import SAMPLES, TYPES, built, lowered, program
from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.ir.interpret import run

ASCEND = "ascendc:ascend910b"
BANG = "bang:mtp_372"
DIM, HEADS, TILE, KEYS = 32, 2, 32, 16
ATTENTION = {"dim": DIM, "block_M": TILE, "block_N": KEYS}

# Lengths of sequences around those of tiles; then starts that no sequence has.
STARTS = {
    "lengths": (0, 0, 1, 16, 47, 79, 112, 112, 145),
    "before": (-5, 12, 40, 41),
    "far_before": (-40, -3, 30),
    "past_the_end": (10, 42, 75, 120),
    "backwards": (30, 10, 20),
}
TOTAL = {"lengths": 145, "before": 41, "far_before": 30, "past_the_end": 70, "backwards": 40}


def tensors(case: str, count: int) -> list[Any]:
    rng = np.random.default_rng(3)
    shape = (TOTAL[case], HEADS, DIM)
    return [rng.standard_normal(shape).astype(np.float16) for _ in range(count)]


def agrees(path: Path, out: Path, target: str, defines: dict[str, object], given: Any) -> None:
    """The kernel and the program write the same from `given`, which the last array is the result of."""
    form = lowered(path, defines, target)
    assert form.plan is not None, form.diagnostics.items
    kernel = built(path, out, defines, target)[form.function.name]
    names = [param.name for param in form.function.params]
    expected = run(form.function, {k: np.copy(v) for k, v in zip(names, given, strict=True)})
    kernel(*given)
    for name, wanted in expected.items():
        got = np.asarray(given[names.index(name)]).astype(np.float64)
        want = np.asarray(wanted).astype(np.float64)
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3, err_msg=name)


@pytest.mark.parametrize("target", [ASCEND, BANG])
@pytest.mark.parametrize("case", list(STARTS))
@pytest.mark.parametrize("causal", [True, False])
def test_attention_over_sequences(case: str, causal: bool, target: str, tmp_path: Path) -> None:
    if not causal and case != "lengths":
        return
    q, k, v = tensors(case, 3)
    starts = np.array(STARTS[case], np.int32)
    longest = np.int32(max(TILE + 1, int(np.diff(starts).max())))
    given = [q, k, v, starts, longest, np.zeros_like(q)]
    path = SAMPLES / "varlen_attention.py"
    if "before" in case:  # what the sample assumes, they do not
        text = path.read_text().replace("            T.assume(start >= 0)\n", "")
        path = tmp_path / "varlen_attention.py"
        path.write_text(text)
    agrees(path, tmp_path, target, {**ATTENTION, "causal": causal}, given)


def from_starts(rows: int, rest: tuple[int, ...], starts: list[Any], dtype: str) -> list[Any]:
    """A tensor, where blocks of it start, and room for a result like it."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((rows, *rest)).astype(dtype)
    return [x, np.array(starts, np.int32), np.zeros_like(x)]


ROWS = [[-5, 11, 30], [-16, -1, 70], [3, 19, 60], [-90, 0, 45]]  # blocks of 16 of 48 rows


@pytest.mark.parametrize("target", [ASCEND, BANG])
@pytest.mark.parametrize("starts", ROWS, ids=str)
def test_rows_outside_of_the_tensor_are_zeros(
    starts: list[int], target: str, tmp_path: Path
) -> None:
    agrees(program("shifted"), tmp_path, target, {}, from_starts(48, (40,), starts, "float32"))


@pytest.mark.parametrize("target", [ASCEND, BANG])
def test_so_are_planes(target: str, tmp_path: Path) -> None:
    x, starts, _ = from_starts(
        5, (9, 24), [[0, 0], [-1, -3], [-2, 7], [4, -4], [3, 8], [5, 2], [-9, 0]], "float16"
    )
    given = [x, starts, np.zeros((7, 3, 4, 24), np.float16)]
    agrees(program("shifted_planes"), tmp_path, target, {}, given)


@pytest.mark.parametrize(
    ("target", "types"),
    [(ASCEND, "float16"), (ASCEND, "bfloat16"), (BANG, "float16")],
)
def test_products_of_such_rows(target: str, types: str, tmp_path: Path) -> None:
    dtype = np.dtype(TYPES.get(types, types))
    a, starts, _ = from_starts(80, (40,), [-20, 12, 44, 90], "float32")
    b = np.random.default_rng(5).standard_normal((4, 40, 24))
    given = [a.astype(dtype), b.astype(dtype), starts, np.zeros((80, 24), dtype)]
    path = Path(__file__).parent / "products/shifted_product.py"
    agrees(path, tmp_path, target, {"dtype": types, "out_dtype": types}, given)


@pytest.mark.parametrize("starts", [[-5, 43, 91], [-48, 0, 99], [-3, 100, 45]], ids=str)
def test_elements_of_a_row_on_bang(starts: list[int], tmp_path: Path) -> None:
    given = from_starts(100, (), starts, "float32")
    agrees(program("shifted_row"), tmp_path, BANG, {}, given)


def test_elements_of_a_row_stay_refused_on_ascend() -> None:
    """What is left of them would not start at a whole block of the tile."""
    with pytest.raises(InputError, match="may start before the tensor"):
        lowered(program("shifted_row"), {}, ASCEND)


@pytest.mark.parametrize("target", [ASCEND, BANG])
@pytest.mark.parametrize("causal", [True, False])
def test_attention_that_zeroes_what_lies_past_an_end(
    causal: bool, target: str, tmp_path: Path
) -> None:
    q, k, v = tensors("lengths", 3)
    starts = np.array(STARTS["lengths"], np.int32)
    given = [q, k, v, starts, starts, np.int32(40), np.zeros_like(q)]
    path = Path(__file__).parent / "products/padded_sequences.py"
    agrees(path, tmp_path, target, {"causal": causal}, given)


@pytest.mark.parametrize("target", [ASCEND, BANG])
def test_products_of_groups_of_rows(target: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    sizes = np.array([33, 0, 1, 31, 64], np.int32)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int32)
    places = [(g, b) for g, size in enumerate(sizes) for b in range(-(-int(size) // 32))]
    a = rng.standard_normal((int(sizes.sum()), 48)).astype(np.float16)
    b = rng.standard_normal((5, 48, 40)).astype(np.float16)
    group_of, block_in_group = (np.array(x, np.int32) for x in zip(*places, strict=True))
    c = np.zeros((len(a), 40), np.float16)
    path = Path(__file__).parent / "products/grouped_product.py"
    agrees(path, tmp_path, target, {}, [a, b, sizes, starts, group_of, block_in_group, c])


FRAME = """import tilelang
import tilelang.language as T


@tilelang.jit
def promised(block=8, width=16):
    rows, count = T.dynamic("rows, count")

    @T.prim_func
    def main(
        X: T.Tensor((rows, width), "float32"),
        starts: T.Tensor((count,), "int32"),
        Y: T.Tensor((count, block, width), "float32"),
    ):
        with T.Kernel(count) as b:
            tile = T.alloc_fragment((block, width), "float32")
            at = starts[b]
            {0}
            T.copy(X[at : at + block, 0:width], tile)
            T.copy(tile, Y[b, 0:block, 0:width])

    return main
"""


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("T.assume(at >= 0)", False),
        ("T.assume(at + b >= b)", False),
        ("T.assume(at >= -1)", True),
        ("if b > 0:\n                T.assume(at >= 0)", True),
        ("", True),
    ],
)
@pytest.mark.parametrize("target", [ASCEND, BANG])
def test_starts_that_the_author_assumes_to_be_inside(
    said: str, asked: bool, target: str, tmp_path: Path
) -> None:
    path = tmp_path / "promised.py"
    path.write_text(FRAME.format(said))
    assert ("_before" in lowered(path, {}, target).text) == asked


@pytest.mark.parametrize("target", [ASCEND, BANG])
def test_a_number_that_is_read_before_its_tensor_is_written(target: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((300, 24)).astype(np.float32)
    at = rng.integers(-9, 300, (90, 16)).astype(np.int32)
    agrees(program("counters"), tmp_path, target, {}, [x, at, np.zeros((90, 8, 24), np.float32)])


@pytest.mark.parametrize("target", [ASCEND, BANG])
def test_a_number_that_is_read_behind_a_store_is_refused(target: str) -> None:
    with pytest.raises(InputError, match="may have been written by now"):
        lowered(program("counters"), {"late": True}, target)


@pytest.mark.parametrize("target", [ASCEND, BANG])
def test_the_smaller_of_numbers_that_tensors_hold(target: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((9, 16)).astype(np.float32)
    n = rng.integers(-2, 9, (7,)).astype(np.int32)
    agrees(program("looked_up"), tmp_path, target, {}, [x, n, np.zeros((7, 16), np.float32)])


@pytest.mark.parametrize("target", [ASCEND, BANG])
@pytest.mark.parametrize("value", ["element", "zero"])
def test_rows_from_a_length_on_get_a_value(value: str, target: str, tmp_path: Path) -> None:
    a, v, n = np.ones((64, 64), np.float32), np.full(8, 7, np.float32), np.full(8, 10, np.int32)
    given = [a, v, n, np.zeros_like(a)]
    agrees(program("rows_filled"), tmp_path, target, {"value": value}, given)
    assert given[3][10, 0] == (7 if value == "element" else 0)
