"""What BANG C texts say: each synchronisation is needed, and what is refused says why."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tile2c
from cores_harness import HEADER, PROGRAMS, arguments, built, lowered, program
from tile2c.runtime.errors import KernelError
from tile2c.transpile.diagnostics import Diagnostic, InputError
from tile2c.transpile.ir.interpret import run
from tile2c.transpile.lower.cores import print_plan

TARGET = "bang:mtp_372"
SIZES: dict[str, list[dict[str, int]]] = {
    "add": [{"N": 100_000}],
    "weights_products": [{"M": 40, "N": 50, "K": 90}],
}


def lines_of(text: str) -> list[int]:
    return [n for n, line in enumerate(text.split("\n")) if line.lstrip().startswith("__sync")]


def survives(name: str, out: Path, line: int) -> bool:
    """Whether the kernel still is right, and nothing is reported, when one line is gone."""
    path = program(name)
    if not out.exists():
        built(path, out, {}, TARGET)
    form = lowered(path, {}, TARGET)
    assert form.plan is not None
    file = out / json.loads((out / "tile2c.json").read_text())["kernels"][0]["file"]
    whole = file.read_text("utf-8")
    lines = whole.split("\n")
    file.write_text("\n".join([*lines[:line], *lines[line + 1 :]]), "utf-8")
    try:
        kernels = tile2c.load(out, backend="emulate", target=TARGET, check="races,memory")
        outputs = {p.name for p in form.plan.params if getattr(p, "role", "") == "out"}
        for sizes in SIZES[name]:
            given = arguments(form.function, sizes, outputs)
            expected = run(form.function, {k: v for k, v in given.items() if k not in outputs})
            kernels[form.function.name](*given.values())
            for key, value in expected.items():
                if not np.allclose(given[key], value, rtol=1e-2, atol=1e-2):
                    return False
    except KernelError:
        return False
    finally:
        file.write_text(whole, "utf-8")
    return True


@pytest.mark.parametrize("name", SIZES)
def test_every_synchronisation_is_needed(name: str, tmp_path: Path) -> None:
    path = program(name)
    text = lowered(path, {}, TARGET).text
    found = lines_of(text)
    assert found
    kept = [
        text.split("\n")[line].strip() for line in found if survives(name, tmp_path / "o", line)
    ]
    assert not kept


def refusal(body: str, tmp_path: Path, target: str = TARGET) -> Diagnostic:
    path = tmp_path / "refused.py"
    path.write_text(HEADER + body, "utf-8")
    try:
        form = lowered(path, {}, target)
    except InputError as error:
        return error.diagnostic
    assert form.plan is None
    return next(item for item in form.diagnostics.items if item.severity == "error")


FRAME = """
@tilelang.jit(out_idx=[-1])
def refused(block_M={m}, block_N={n}, block_K={k}, dtype="{dtype}"):
    M, N, K = T.dynamic("M, N, K")

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "{sums}")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            c = T.alloc_fragment((block_M, block_N), "{sums}")
            T.clear(c)
            T.copy(A[by * block_M, 0], a)
            T.copy(B[0, bx * block_N], b)
            T.gemm(a, b, c)
            T.copy(c, C[by * block_M, bx * block_N])

    return main
"""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            (64, 64, 32, "int8", "int32"),
            "the matrix unit of bang:mtp_372 has no product of int8 and int8 into int32",
        ),
        ((512, 512, 128, "float16", "float32"), "the tiles of refused take"),
    ],
)
def test_products_that_the_unit_has_not(
    given: tuple[int, int, int, str, str], message: str, tmp_path: Path
) -> None:
    m, n, k, dtype, sums = given
    found = refusal(FRAME.format(m=m, n=n, k=k, dtype=dtype, sums=sums), tmp_path)
    assert message in found.message
    assert found.span is not None
    assert found.help


def test_division_is_a_reciprocal_where_there_is_none() -> None:
    text = lowered(PROGRAMS / "functions.py", {}, TARGET).text
    assert "__bang_recip" in text
    assert "__bang_div" not in text
    assert "__bang_div" in lowered(PROGRAMS / "functions.py", {}, "bang:mtp_592").text


@pytest.mark.parametrize(
    ("name", "staged"),
    [("softmax", True), ("weights_products", True), ("additions", True), ("column_strips", False)],
)
def test_the_plan_can_be_read(name: str, staged: bool) -> None:
    path = program(name)
    plan = lowered(path, {}, TARGET).plan
    assert plan is not None
    text = print_plan(plan)
    assert text.startswith(f"plan {plan.name}\n")
    assert ("choice copies of tiles loaded or stored ahead: 2" in text) == staged
    assert ("units meet" in text) == staged


def test_the_authors_words_stand_in_the_stage_they_are_about() -> None:
    text = lowered(program("varlen_attention"), {}, TARGET).text
    for words in (
        "// Shorter sequences leave their last blocks without work.",
        "// Rows past the end belong to the next sequence",
        "// T.copy(Q[start + first : start + first + block_M, by, :], Q_shared)",
        "// T.copy(K[start + ko * block_N : start + (ko + 1) * block_N, by, :], K_shared)",
        "// for ko in T.Pipelined(",
    ):
        assert text.count(words) == 1, words
    assert "// start = " not in text


def test_copies_on_the_chip_wait_for_calls_and_calls_for_them() -> None:
    text = lowered(program("weights_products"), {}, TARGET).text
    lines = [line.strip() for line in text.split("\n")]
    copies = [n for n, line in enumerate(lines) if "NRAM2WRAM" in line]
    assert copies
    for at in copies:
        first = next(n for n in range(at, 0, -1) if lines[n].startswith("__memcpy"))
        assert lines[first].startswith("__memcpy_async(")
        assert lines[first - 1].startswith("__sync_compute();  // ")
        assert lines[at + 1].startswith("__sync_move();  // ")
