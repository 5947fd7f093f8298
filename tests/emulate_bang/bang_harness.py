"""Builds a BANG C text with the model and launches it on NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tile2c.runtime.emulate import load
from tile2c.runtime.emulate.module import EmulatedModule, TensorArgument, ValueArgument
from tile2c.runtime.errors import KernelError

BOTH = frozenset(("races", "memory"))


def built(
    text: str, folder: Path, arch: str = "mtp_372", checks: frozenset[str] = BOTH
) -> EmulatedModule:
    """The module of a kernel text."""
    path = folder / "kernel.mlu"
    path.write_text(text, "utf-8")
    return load(path, family="bang", arch=arch, checks=checks)


def launch(
    module: EmulatedModule,
    entry: str,
    arguments: Sequence[np.ndarray[Any, Any] | int | float],
    outputs: Sequence[int],
    tasks: int = 1,
) -> None:
    """Runs `entry`; arrays are tensors named a0, a1 …, ints int32, floats float."""
    values: list[TensorArgument | ValueArgument] = []
    for number, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray):
            values.append(
                TensorArgument(
                    f"a{number}", argument.ctypes.data, argument.nbytes, number in outputs
                )
            )
        elif isinstance(argument, float):
            values.append(ValueArgument(bytes(ctypes.c_float(argument))))
        else:
            values.append(ValueArgument(bytes(ctypes.c_int32(argument))))
    module.launch(entry, (tasks, 1, 1), (1, 1, 1), 0, values)


def report(
    module: EmulatedModule,
    entry: str,
    arguments: Sequence[np.ndarray[Any, Any] | int | float],
    outputs: Sequence[int],
    tasks: int = 1,
) -> str:
    """What the model says against it; empty if it runs."""
    try:
        launch(module, entry, arguments, outputs, tasks)
    except KernelError as error:
        return str(error)
    return ""
