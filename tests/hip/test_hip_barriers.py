"""Each barrier of a HIP kernel is needed: the emulator reports the kernel without it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tile2c
from hip_programs import BOTH, GEMMS, SAMPLES, random, text_of
from tile2c.runtime.errors import KernelError, RaceError

BARRIER = re.compile(r"^ *__syncthreads\(\);.*\n", re.MULTILINE)
CASES: dict[str, tuple[Path, dict[str, object], tuple[tuple[int, ...], ...]]] = {
    "row_sum": (SAMPLES / "row_sum.py", {"block_M": 1, "threads": 256}, ((3, 1030),)),
    "softmax": (SAMPLES / "softmax.py", {"N": 777}, ((3, 777),)),
    "gemm": (SAMPLES / "gemm.py", {}, ((130, 72), (72, 136))),
    "gemm_bias_relu": (SAMPLES / "gemm_bias_relu.py", {}, ((130, 72), (72, 136), (136,))),
    "one_tile": (GEMMS, {"num_stages": 1}, ((70, 72), (72, 80))),
    "one_tile_ahead": (
        GEMMS,
        {"block_M": 128, "block_N": 128, "block_K": 128, "threads": 256},
        ((70, 264), (264, 80)),
    ),
}


def run(folder: Path, shapes: tuple[tuple[int, ...], ...], dtype: str) -> Any:
    (kernel,) = tile2c.load(folder, "emulate", check=BOTH).values()
    return kernel(*(random(shape, dtype, number) for number, shape in enumerate(shapes)))


@pytest.mark.parametrize("case", CASES)
def test_every_barrier_is_needed(tmp_path: Path, case: str) -> None:
    source, choices, shapes = CASES[case]
    dtype = "float32" if case == "row_sum" else "float16"
    path = text_of(source, tmp_path, **choices)
    text = path.read_text()
    barriers = list(BARRIER.finditer(text))
    assert barriers
    for barrier in barriers:
        path.write_text(text[: barrier.start()] + text[barrier.end() :])
        with pytest.raises(KernelError) as caught:
            run(tmp_path, shapes, dtype)
        assert isinstance(caught.value, RaceError), (barrier.group(), str(caught.value))
        assert caught.value.line
    path.write_text(text)
    assert np.isfinite(np.asarray(run(tmp_path, shapes, dtype)).astype(np.float32)).all()
