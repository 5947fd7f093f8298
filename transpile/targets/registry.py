"""Finds a target by its name; packages may add theirs through the entry point `tile2c.targets`."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from types import ModuleType

    from tile2c.transpile.targets.target import Target

# Family -> module with `TARGETS: tuple[Target, ...]`; the first one is what the bare family means.
FAMILIES = ("cuda", "hip", "dcu", "musa", "maca", "corex", "ppu", "ascendc", "bang")


class UnknownTarget(LookupError):
    """No such target; the message names the nearest known one."""


@cache
def _family(name: str) -> tuple[Target, ...]:
    if name in FAMILIES:
        module = import_module(f"tile2c.transpile.targets.{name}")
    else:
        added = plug_in(name)
        if added is None:
            return ()
        module = added
    targets: tuple[Target, ...] = module.TARGETS
    return targets


def plug_in(family: str) -> ModuleType | None:
    """The module of a family that a package adds; None if there is none."""
    found = [entry for entry in _plug_ins() if entry.name == family]
    module: ModuleType | None = found[0].load() if found else None
    return module


def _families() -> tuple[str, ...]:
    return (*FAMILIES, *sorted(entry.name for entry in _plug_ins()))


def _plug_ins() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return tuple(entry_points(group="tile2c.targets"))


def all_targets() -> tuple[Target, ...]:
    """Every target of every family, built-in families first."""
    return tuple(target for family in _families() for target in _family(family))


def find(name: str) -> Target:
    """The target `FAMILY[:ARCH]`; raises UnknownTarget with the nearest known name."""
    family, _, arch = name.partition(":")
    targets = _family(family)
    if targets and not arch:
        return targets[0]
    for target in targets:
        if target.arch == arch:
            return target
    known = [target.name for target in targets] or [target.name for target in all_targets()]
    near = meant(name) or next(iter(get_close_matches(name, known, n=1, cutoff=0.3)), None)
    hint = f"; did you mean {near}?" if near else f"; known: {', '.join(known)}"
    raise UnknownTarget(f"unknown target {name!r}{hint}")


def meant(name: str) -> str | None:
    """The target of an architecture without its family, `gfx942`; the family of a maker, `amd`."""
    name = name.strip().lower()
    maker, _, arch = name.rpartition(":")
    every = all_targets()
    for target in every:
        if target.arch == arch and maker in ("", *target.makers):
            return target.name
    spoken = name.partition(":")[0]
    return next((target.family for target in every if spoken in target.makers), None)
