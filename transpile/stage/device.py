"""What a program learns when it asks for the device: the facts of the target that is written for."""

from __future__ import annotations

import re
from dataclasses import field

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.record import record
from tile2c.transpile.stage.values import Instance, Unknown, Value

# Multiprocessors of a common chip of each architecture. Programs size persistent grids by them; any
# number gives right results.
_UNITS = {
    "sm_70": 80,
    "sm_75": 40,
    "sm_80": 108,
    "sm_86": 84,
    "sm_89": 142,
    "sm_90": 132,
    "sm_90a": 132,
    "sm_100": 148,
    "sm_120": 170,
    "gfx90a": 104,
    "gfx942": 304,
    "gfx950": 256,
    "gfx1100": 96,
    "gfx1201": 64,
}
_WARPS = {"hip": 64}


@record
class Device:
    """A target as the programs see it; with no name nothing is known."""

    name: str = ""  # "cuda:sm_90a"
    asked: set[str] = field(default_factory=set, compare=False)  # the queries that were answered

    @property
    def family(self) -> str:
        return self.name.partition(":")[0]

    @property
    def arch(self) -> str:
        return self.name.partition(":")[2]

    @property
    def capability(self) -> tuple[int, int] | None:
        """`(9, 0)`; None where the chip has none."""
        if found := re.fullmatch(r"sm_(\d+)(\d)[a-z]?", self.arch):
            return int(found[1]), int(found[2])
        if found := re.fullmatch(r"gfx(\d+)(\w)(\w)", self.arch):
            return int(found[1]), int(found[2], 16)
        return None

    @property
    def units(self) -> int | None:
        """Multiprocessors."""
        return _UNITS.get(self.arch)

    def answer(self, query: str, span: Span | None) -> Value:
        """The value of a call such as `torch.cuda.get_device_capability()`; None if it is none."""
        known = _ANSWERS.get(query)
        if known is None:
            return None
        self.asked.add(query)
        found = known(self)
        if found is None:
            return Unknown(f"{query}() has no answer for {self.name or 'no target'}", span)
        return found

    def float8(self, kind: str) -> str | None:
        """The type of `e4m3` or `e5m2`: CDNA3 has its own, with other values."""
        self.asked.add("float8")
        if kind not in ("e4m3", "e5m2"):
            return None
        own = "fnuz" if self.arch.startswith("gfx94") else "fn" if kind == "e4m3" else ""
        return f"float8_{kind}{own}"

    def fact(self, path: str) -> Value:
        """The value of a name such as `torch.version.hip`; `...` if it is none of the device's."""
        if path not in ("torch.version.hip", "torch.version.cuda") or not self.name:
            return ...
        self.asked.add(path)
        return "12.8" if path.endswith(self.family) else None


def _properties(device: Device) -> Value:
    capability = device.capability
    if capability is None or device.units is None:
        return None
    return Instance(
        None,
        {
            "multi_processor_count": device.units,
            "major": capability[0],
            "minor": capability[1],
            "warp_size": _WARPS.get(device.family, 32),
            "gcnArchName": device.arch,
        },
    )


def _version(device: Device) -> Value:
    capability = device.capability
    return None if capability is None else f"{capability[0]}.{capability[1]}"


_ANSWERS = {
    "torch.cuda.get_device_capability": lambda device: device.capability,
    "torch.cuda.get_device_properties": _properties,
    "torch.cuda.is_available": lambda device: True if device.name else None,
    "torch.cuda.device_count": lambda device: 1 if device.name else None,
    "torch.cuda.current_device": lambda device: 0 if device.name else None,
    "tilelang.carver.arch.driver.get_num_sms": lambda device: device.units,
    "tilelang.contrib.nvcc.get_target_compute_version": _version,
}
