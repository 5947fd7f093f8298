"""Each flag and each queue step is needed: the emulator reports the text without it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import tile2c
from cores_harness import SAMPLES, arguments, built, lowered, program
from tile2c.runtime.errors import KernelError
from tile2c.transpile.ir.interpret import run


def fails_without(
    path: Path,
    tmp_path: Path,
    line: int,
    sizes: dict[str, int],
    defines: Mapping[str, object] = {},
) -> bool:
    """Whether the kernel is reported, or computes something else, when one line is gone."""
    out = tmp_path / "out"
    if not out.exists():
        built(path, out, defines)
    form = lowered(path, defines)
    file = out / json.loads((out / "tile2c.json").read_text())["kernels"][0]["file"]
    whole = file.read_text("utf-8")
    lines = whole.split("\n")
    file.write_text("\n".join([*lines[:line], *lines[line + 1 :]]), "utf-8")
    try:
        kernels = tile2c.load(
            out, backend="emulate", target="ascendc:ascend910b", check="races,memory"
        )
        assert form.plan is not None
        outputs = {p.name for p in form.plan.params if getattr(p, "role", "") == "out"}
        given = arguments(form.function, sizes, outputs)
        expected = run(form.function, {k: v for k, v in given.items() if k not in outputs})
        kernels[form.function.name](*given.values())
    except KernelError:
        return True
    finally:
        file.write_text(whole, "utf-8")
    return not all(
        np.allclose(given[name], value, rtol=1e-4, atol=1e-4) for name, value in expected.items()
    )


def waits(text: str) -> list[int]:
    """Lines that order one unit after another, or a unit after itself."""
    return [
        place
        for place, line in enumerate(text.split("\n"))
        if line.lstrip().startswith(("order<", "PipeBarrier<"))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes", "defines"),
    [
        ("row_sum", {"M": 700, "N": 700}, {}),
        ("bfloat16", {"M": 700, "N": 100}, {}),
        ("transpose_scale_bias", {"M": 700, "N": 700}, {}),
        ("cumsum", {"M": 330, "N": 1200}, {}),
        ("top_k", {"M": 1300}, {"N": 128}),
    ],
)
def test_every_wait_is_needed(
    name: str, sizes: dict[str, int], defines: dict[str, object], tmp_path: Path
) -> None:
    path = program(name)
    text = lowered(path, defines).text
    kept = [
        text.split("\n")[line].strip()
        for line in waits(text)
        if not fails_without(path, tmp_path, line, sizes, defines)
    ]
    assert not kept


def test_without_a_free_the_queue_runs_dry(tmp_path: Path) -> None:
    path = SAMPLES / "add.py"
    text = lowered(path, {}).text
    line = next(i for i, line in enumerate(text.split("\n")) if "FreeTensor" in line)
    assert fails_without(path, tmp_path, line, {"N": 200_000})


def test_parts_of_a_tile_that_lie_apart_order_nothing(tmp_path: Path) -> None:
    """What each half of a byte becomes goes to a plane of its own: one does not wait for the other."""
    tile2c.build(SAMPLES / "int4_gemm.py", tmp_path, "ascendc:ascend910b")
    text = (tmp_path / "int4_gemm.ascendc.cpp").read_text()
    second = text[: text.index("Cast(W_shared_parts[1024]")].split("Mul(W_shared_parts, ")[1]
    assert "PipeBarrier" not in second
