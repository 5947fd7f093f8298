"""What a target description holds, whatever its planner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from tile2c.transpile.record import record
from tile2c.transpile.targets.host import Host


@record(kw_only=True)
class Dialect:
    """How a dialect of C spells what the plan says."""

    types: Mapping[str, str]  # element type -> C type: float16 -> half
    headers: Mapping[str, tuple[str, ...]]  # element type, or "" for every kernel -> includes
    functions: Mapping[tuple[str, str], str]  # (canonical function, element type) -> C function
    to_float: Mapping[str, str] = field(default_factory=dict)  # float16 -> __half2float
    from_float: Mapping[str, str] = field(default_factory=dict)  # float16 -> __float2half_rn
    reserved: frozenset[str] = frozenset()  # names that generated text must not use
    # Element type -> templates of the helpers that convert it to and from float, where no header does.
    declares: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def is_bits(self, name: str) -> bool:
        """Whether a float type is kept as the integer of its bits: only conversions give it meaning."""
        return name in self.declares


@record(kw_only=True)
class Target:
    """One architecture of one family. Sub-classes add what their planner asks for."""

    family: str  # cuda
    arch: str  # sm_80
    planner: Literal["simt", "cores"]
    suffix: str  # .cu
    templates: tuple[str, ...]  # folders under templates/, searched in this order
    dialect: Dialect
    compile: str  # command, with {file} and {stem}
    module_suffix: str  # .cubin
    proven: str  # "has run on silicon" or what has never been tried
    summary: str  # one line for --targets
    facts: str = "vendor's documentation"  # where what the description says comes from
    emulated: str = ""  # what the suite runs in the emulator against the interpreter
    compiled: str = ""  # with what the suite compiles its texts, and how much that says
    makers: tuple[str, ...] = ()  # what people call its maker or its chips, in small letters
    host: Host | None = None  # how C++ launches its kernels; None: no launcher is written

    @property
    def name(self) -> str:
        """`cuda:sm_80`, as on the command line."""
        return f"{self.family}:{self.arch}"
