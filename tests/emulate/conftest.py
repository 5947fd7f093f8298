"""Runs kernel texts in the emulator on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tile2c.runtime.emulate import Argument, TensorArgument, ValueArgument, load

CHECKS = frozenset({"races", "memory"})
Run = Callable[..., None]


def _aligned(value: np.ndarray) -> np.ndarray:
    """A copy at a multiple of 256 bytes, as a device's allocator gives."""
    room = np.empty(value.nbytes + 256, np.uint8)
    start = -room.ctypes.data % 256
    copy = room[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    copy[...] = value
    return copy


def _argument(name: str, value: Any, writable: bool) -> Argument:
    if isinstance(value, np.ndarray):
        return TensorArgument(name, value.ctypes.data, value.nbytes, writable, value)
    if isinstance(value, bytes):
        return ValueArgument(value)
    return ValueArgument(np.asarray(value).tobytes())


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """`run(text, entry, args, grid=, block=, ...)`; args maps names to arrays, scalars or bytes.

    `reads` names the arrays that the kernel must not write.
    """

    def go(
        text: str,
        entry: str,
        args: dict[str, Any],
        *,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (32, 1, 1),
        shared: int = 0,
        reads: tuple[str, ...] = (),
        family: str = "cuda",
        arch: str = "sm_80",
        checks: frozenset[str] = CHECKS,
        cluster: tuple[int, int, int] | None = None,
    ) -> None:
        path = tmp_path / "kernel.cu"
        path.write_text(text)
        module = load(path, family=family, arch=arch, checks=checks)
        copies = {n: _aligned(v) if isinstance(v, np.ndarray) else v for n, v in args.items()}
        arguments = [_argument(name, value, name not in reads) for name, value in copies.items()]
        try:
            module.launch(entry, grid, block, shared, arguments, cluster)
        finally:
            for name, value in args.items():
                if isinstance(value, np.ndarray) and name not in reads:
                    value[...] = copies[name]

    yield go
