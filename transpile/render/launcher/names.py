"""C++ names of a launcher: the author's where C++ lets them, then ours around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from tile2c.runtime.records import KernelRecord
from tile2c.transpile.lower.simt.names import C_KEYWORDS
from tile2c.transpile.record import record

if TYPE_CHECKING:
    from tile2c.transpile.targets import Target

# Headers that programs include as <name.h>: a kernel's header of that name would hide them.
_SYSTEM_HEADERS = frozenset(
    "assert complex ctype cuda dirent errno fcntl features fenv float inttypes iso646 limits locale "
    "malloc math memory poll pthread sched semaphore setjmp signal spawn stdarg stdatomic stdbool "
    "stddef stdint stdio stdlib string strings tgmath thread threads time uchar unistd wchar "
    "wctype".split()
)
_OURS = frozenset(
    "Grid address args bfloat_bits blocks box bytes_of ceil_divided cores countable device_bytes dim3 dims "
    "divided encode "
    "floor_divided floor_modulo grid half_bits kernels largest_size launch least made memcpy most "
    "needed negative queue size_t status steps strides tasks tiles".split()
)


@record(frozen=False)
class Names:
    """`of` maps the author's arguments and sizes; functions carry the kernel's name."""

    base: str  # gemm_launch: what every name outside the file starts with
    header: str  # gemm.h
    source: str  # gemm_launch.cpp
    launch: str
    message: str
    scratch: str  # the function that tells the workspace's size
    of: Mapping[str, str]
    stream: str
    workspace: str
    workspace_bytes: str
    _taken: set[str] = field(default_factory=set)
    _given: dict[str, str] = field(default_factory=dict)

    def fresh(self, wish: str, *, key: str) -> str:
        """A name like `wish` that nothing else has; the same one for the same key."""
        if key not in self._given:
            self._given[key] = _free(wish, self._taken)
        return self._given[key]


def header_name(name: str) -> str:
    """`gemm.h`; `math_kernel.h`, where `math.h` would hide a header of the system."""
    return f"{name}_kernel.h" if name.lower() in _SYSTEM_HEADERS else f"{name}.h"


def names_for(record: KernelRecord, target: Target) -> Names:
    """Names for one kernel; where its entry ends in the architecture, so do the functions."""
    end = f"_{target.arch}" if record.launches[0].entry.endswith(f"_{target.arch}") else ""
    base = f"{record.name}_launch"
    entries = {launch.entry for launch in record.launches}
    taken = set(C_KEYWORDS | _OURS | entries)
    of: dict[str, str] = {}
    for name in (*(argument.name for argument in record.arguments), *record.sizes):
        of[name] = _free(name, taken)
    return Names(
        base=base + end,
        header=header_name(record.name),
        source=f"{record.name}_launch{target.host.launcher if target.host else '.cpp'}",
        launch=base + end,
        message=f"{base}_message{end}",
        scratch=f"{record.name}_workspace_bytes{end}",
        of=of,
        stream=_free("stream", taken),
        workspace=_free("workspace", taken),
        workspace_bytes=_free("workspace_bytes", taken),
        _taken=taken,
    )


def _free(wish: str, taken: set[str]) -> str:
    while wish in taken or wish.startswith("__"):
        wish = f"{wish.lstrip('_')}_"
    taken.add(wish)
    return wish
