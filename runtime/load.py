"""`load`: the kernels of an output folder, on the backend that is asked for or there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from tile2c.runtime.backends.choose import EMULATE, choose
from tile2c.runtime.backends.protocol import Backend
from tile2c.runtime.kernel import Kernel
from tile2c.runtime.records import KernelRecord, read_records

CHECKS = ("races", "memory")


class Kernels(Mapping[str, Kernel]):
    """The kernels of a folder by name."""

    def __init__(self, kernels: Mapping[str, Kernel], folder: Path) -> None:
        self._kernels = kernels
        self._folder = folder

    def __getitem__(self, name: str) -> Kernel:
        try:
            return self._kernels[name]
        except KeyError:
            known = ", ".join(self._kernels) or "none"
            raise KeyError(f"no kernel {name} in {self._folder}; there is {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return f"<kernels {', '.join(self._kernels)} of {self._folder}>"


def load(
    folder: str | os.PathLike[str],
    backend: str | None = None,
    target: str | None = None,
    compile: Literal["auto", "never"] = "auto",
    check: str | None = None,
    *,
    absent: Literal["raise", "later"] = "raise",
) -> Kernels:
    """The kernels of an output folder by name.

    `backend` is "emulate", or a device's family: "cuda". None takes TILE2C_BACKEND, else the device
    that is there, and raises BackendUnavailable without one; with absent="later" the first call raises
    it. `check` ("races,memory") is for the emulator. With compile="never" a kernel without a module
    that fits the device raises CompileError.
    """
    if compile not in ("auto", "never"):
        raise ValueError(f"compile is {compile!r}, not 'auto' or 'never'")
    path = Path(folder)
    checks = parsed_checks(check)
    records = tuple(
        record for record in read_records(path) if target is None or _fits(record, target)
    )
    if not records:
        known = ", ".join(sorted({record.target for record in read_records(path)})) or "no kernel"
        raise ValueError(f"{path} holds nothing for {target}; there is {known}")
    name = backend or os.environ.get("TILE2C_BACKEND") or None
    if checks and name != EMULATE:
        raise ValueError(f'check={check!r} needs backend="emulate": a device checks nothing')
    targets = [record.target for record in records]
    chosen = choose(name, targets, checks, later=absent == "later")
    selected = _selected(records, chosen)
    kernels = {
        record.name: Kernel(record, path, chosen, may_compile=compile == "auto")
        for record in selected
    }
    if compile == "never":
        for kernel in kernels.values():
            kernel.prepare()
    return Kernels(kernels, path)


def parsed_checks(check: str | None) -> tuple[str, ...]:
    """`"races,memory"` as names; raises ValueError for one that is not known."""
    names = tuple(name.strip() for name in (check or "").split(",") if name.strip())
    for name in names:
        if name not in CHECKS:
            raise ValueError(f"unknown check {name!r}; known: {', '.join(CHECKS)}")
    return names


def _fits(record: KernelRecord, target: str) -> bool:
    """A target is named whole, or by its family alone."""
    return record.target == target or record.family == target


def _selected(records: tuple[KernelRecord, ...], backend: Backend) -> list[KernelRecord]:
    """Of each kernel the record whose target fits the device best."""
    found: list[KernelRecord] = []
    for name in dict.fromkeys(record.name for record in records):
        same = {record.target: record for record in records if record.name == name}
        target = backend.select(tuple(same))
        if target is not None:
            found.append(same[target])
    return found
