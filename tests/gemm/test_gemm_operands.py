"""Operands in registers, parts of tiles, clear_accum, and products that feed each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from gemm_cases import TYPES, build, close, exact, numbers, run

AMPERE = "cuda:sm_80"


def _from_fragments(folder: Path, target: str, **defines: object) -> str:
    """Builds and runs `from_fragments`; the text, once its numbers are right."""
    text = build(folder, "from_fragments", target, defines, "operands")
    dtype, sums = str(defines.get("dtype", "float16")), str(defines.get("sum_dtype", "float32"))
    m, n, k = 64, 48, 64
    turned_a, turned_b = defines.get("trans_A", False), defines.get("trans_B", False)
    a = numbers(dtype, *((k, m) if turned_a else (m, k)))
    b = numbers(dtype, *((n, k) if turned_b else (k, n)), seed=1)
    want = (exact(a).T if turned_a else exact(a)) @ (exact(b).T if turned_b else exact(b))
    assert close(run(folder, target, a, b), want, dtype, sums)
    return text


@pytest.mark.parametrize(
    "held", [(True, False), (False, True), (True, True)], ids=("A", "B", "both")
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_fragments_are_operands_as_they_are(
    tmp_path: Path, dtype: str, held: tuple[bool, bool]
) -> None:
    sums = "int32" if dtype == "int8" else "float32"
    turned = dtype == "int8"
    text = _from_fragments(
        tmp_path, AMPERE, dtype=dtype, sum_dtype=sums, a_held=held[0], b_held=held[1],
        trans_A=turned, trans_B=turned,
    )  # fmt: skip
    assert "local_shared" not in text


@pytest.mark.parametrize("target", ["cuda:sm_70", "cuda:sm_75", "hip:gfx942"])
def test_fragments_on_other_chips(tmp_path: Path, target: str) -> None:
    assert "local_shared" not in _from_fragments(tmp_path, target, b_held=True)


def test_without_matrix_unit_fragments_go_through_shared_memory(tmp_path: Path) -> None:
    text = _from_fragments(tmp_path, AMPERE, threads=40, b_held=True)
    assert "A_local_shared" in text
    assert "B_local_shared" in text


@pytest.mark.parametrize(
    ("target", "defines"),
    [
        (AMPERE, {}),
        (AMPERE, {"dtype": "int8", "sum_dtype": "int32"}),
        (AMPERE, {"threads": 31}),
        ("hip:gfx942", {}),
    ],
)
def test_parts_of_tiles(tmp_path: Path, target: str, defines: dict[str, object]) -> None:
    build(tmp_path, "parts", target, defines, "operands")
    dtype, sums = str(defines.get("dtype", "float16")), str(defines.get("sum_dtype", "float32"))
    a, b = numbers(dtype, 2, 32, 64), numbers(dtype, 64, 64, seed=1)
    first, second = exact(a)
    left, right = exact(b)[:, :32], exact(b)[:, 32:]
    assert close(run(tmp_path, target, a, b), first @ left * 2 + second @ right, dtype, sums)


@pytest.mark.parametrize("threads", [64, 40])
@pytest.mark.parametrize("always", [False, True])
def test_clear_accum(tmp_path: Path, always: bool, threads: int) -> None:
    build(tmp_path, "clearing", AMPERE, {"always": always, "threads": threads}, "operands")
    a, b = numbers("float16", 3, 32, 32), numbers("float16", 3, 32, 32, seed=1)
    want = sum(exact(a)[r] @ exact(b)[r] for r in ((2,) if always else (1, 2)))
    assert close(run(tmp_path, AMPERE, a, b), want, "float16", "float32")


@pytest.mark.parametrize(
    ("target", "defines", "stays"),
    [
        (AMPERE, {}, True),
        (AMPERE, {"dtype": "bfloat16"}, True),
        (AMPERE, {"full_rows": False}, False),  # columns of P are spread over warps
        (AMPERE, {"dtype": "float32"}, False),  # sums and TF32 operands have other maps
        ("cuda:sm_75", {}, True),
        ("cuda:sm_70", {}, False),
        ("hip:gfx942", {}, True),
        ("hip:gfx1100", {}, False),
    ],
)
def test_a_result_feeds_the_next_product(
    tmp_path: Path, target: str, defines: dict[str, object], stays: bool
) -> None:
    text = build(tmp_path, "chain", target, defines, "operands")
    dtype = str(defines.get("dtype", "float16"))
    a, b, v = numbers(dtype, 64, 32), numbers(dtype, 64, 32, seed=1), numbers(dtype, 64, 32, seed=2)
    scores = exact(a) @ exact(b).T
    top = scores.max(1, keepdims=True)
    want = exact((scores - top).astype(TYPES[dtype])) @ exact(v) + top
    assert close(run(tmp_path, target, a, b, v), want, dtype, dtype)
    assert ("P_shared" in text) is not stays
