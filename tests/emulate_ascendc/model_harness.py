"""Builds a kernel text with the model and launches it on NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tile2c.runtime.emulate.ascendc import build

KERNELS = Path(__file__).with_name("kernels")
KINDS = ("none", "race", "memory", "deadlock", "misuse", "unsupported")


class Tensor(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("writable", ctypes.c_int32),
    )


class Report(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("thread_a", ctypes.c_int32),
        ("thread_b", ctypes.c_int32),
        ("line_a", ctypes.c_int32),
        ("line_b", ctypes.c_int32),
        ("array", ctypes.c_char * 128),
        ("text", ctypes.c_char * 4096),
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    kind: str
    text: str
    array: str
    lines: tuple[int, int]


def source(name: str) -> str:
    return (KERNELS / f"{name}.ascendc.cpp").read_text("utf-8")


def changed(text: str, old: str, new: str, count: int = 1) -> str:
    assert old in text, old
    return text.replace(old, new, count)


def launch(
    text: str,
    entry: str,
    arguments: Sequence[np.ndarray[Any, Any] | int | float],
    outputs: Sequence[int],
    *,
    cores: int = 2,
    checks: int = 3,
) -> Outcome:
    """Runs `entry`; arrays are tensors named a0, a1 …, ints uint32, floats float."""
    path = build(text, f"{entry}.ascendc.cpp", "ascend910b", [entry])
    library = ctypes.CDLL(str(path))
    tensors: list[Tensor] = []
    values: list[ctypes.c_void_p | ctypes.c_float | ctypes.c_uint32] = []
    for index, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray):
            base = argument.ctypes.data
            name = f"a{index}".encode()
            tensors.append(Tensor(name, base, argument.nbytes, int(index in outputs)))
            values.append(ctypes.c_void_p(base))
        elif isinstance(argument, float):
            values.append(ctypes.c_float(argument))
        else:
            values.append(ctypes.c_uint32(argument))
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    table = (Tensor * max(len(tensors), 1))(*tensors)
    one = (ctypes.c_uint32 * 3)(1, 1, 1)
    report = Report()
    library.emu_launch(
        entry.encode(),
        (ctypes.c_uint32 * 3)(cores, 1, 1),
        one,
        one,
        ctypes.c_uint64(0),
        pointers,
        len(values),
        table,
        len(tensors),
        checks,
        ctypes.byref(report),
    )
    return Outcome(
        KINDS[report.kind],
        report.text.decode(),
        report.array.decode(),
        (report.line_a, report.line_b),
    )
