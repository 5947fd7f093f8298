"""A kernel of the Ascend C family goes to its model, and reports become the runtime's errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from model_harness import KERNELS, changed, source
from tile2c.runtime import emulate
from tile2c.runtime.errors import AccessError, CompileError, KernelError, RaceError

CHECKS = frozenset({"races", "memory"})


def run(path: Path) -> tuple[bool, emulate.EmulatedModule]:
    module = emulate.load(path, family="ascendc", arch="ascend910b", checks=CHECKS)
    x = np.arange(3000, dtype=np.float16)
    z = np.zeros_like(x)
    arguments: list[emulate.Argument] = [
        emulate.TensorArgument(name, array.ctypes.data, array.nbytes, name == "z", array)
        for name, array in (("x", x), ("y", x), ("z", z))
    ]
    arguments.append(emulate.ValueArgument((3000).to_bytes(4, "little")))
    module.launch("add", (2, 1, 1), (1, 1, 1), 0, arguments)
    return bool((z == x + x).all()), module


def test_runs() -> None:
    right, module = run(KERNELS / "add.ascendc.cpp")
    assert right
    assert module.parameter_sizes("add") == (8, 8, 8, 4)
    assert module.parameter_sizes("other") is None


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("z_gm[start], z", "z_gm[start / 2], z", RaceError),
        ("z_gm[start], z", "x_gm[start], z", AccessError),
        ("    x_queue.EnQue(x);\n", "", KernelError),
    ],
)
def test_errors(tmp_path: Path, old: str, new: str, error: type[KernelError]) -> None:
    path = tmp_path / "changed.ascendc.cpp"
    path.write_text(changed(source("add"), old, new), encoding="utf-8")
    with pytest.raises(error) as caught:
        run(path)
    assert type(caught.value) is error
    assert f"{path}:{caught.value.line}: " in str(caught.value)


def test_text_that_does_not_compile(tmp_path: Path) -> None:
    path = tmp_path / "broken.ascendc.cpp"
    path.write_text(changed(source("add"), "Add(z, x, y", "Added(z, x, y"), encoding="utf-8")
    with pytest.raises(CompileError, match="Added"):
        run(path)


def test_narrowing_in_braces_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "narrow.ascendc.cpp"
    text = changed(source("add"), "rows{1, static_cast", "rows{count, static_cast")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CompileError, match="narrowing"):
        run(path)
