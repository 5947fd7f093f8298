"""Errors that `-D` values bring: one message tells of them, not one for each place that they reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile2c.transpile.diagnostics import Diagnostics, Severity
from tile2c.transpile.diagnostics.diagnostic import Note
from tile2c.transpile.diagnostics.render import ordered
from tile2c.transpile.stage.defines import Defines, Dynamic
from tile2c.transpile.stage.state import describe
from tile2c.transpile.stage.values import Missing, Value

Names = tuple[str, ...]


def to_blame(defines: Defines, kernels: frozenset[str], passes: Callable[[Defines], bool]) -> Names:
    """Names of the values without which there is no error: one, or as few as it takes, or none.

    `kernels`: their names. `passes`: whether they are made without errors with other values.
    """
    meant = [name for kernel, name, _ in defines.values if kernel is None or kernel in kernels]
    names = tuple(dict.fromkeys(meant))

    def passes_without(some: Names) -> bool:
        kept = tuple(item for item in defines.values if item[1] not in some)
        return passes(replace(defines, values=kept, used=set()))

    for name in names:
        if passes_without((name,)):
            return (name,)
    if len(names) < 2 or not passes_without(names):
        return ()
    for name in names:
        fewer = tuple(other for other in names if other != name)
        if passes_without(fewer):
            names = fewer
    return names


def one_message(
    diagnostics: Diagnostics,
    names: Names,
    given: Callable[[str], Value | Missing],
    own: Callable[[str], Value | Missing],
) -> Diagnostics:
    """The first error, with what it comes from. `given`: by `-D`; `own`: what the source has."""
    error = next(item for item in ordered(diagnostics.items) if item.severity is Severity.ERROR)
    made = " and ".join(f"{name} {_shown(given(name))}" for name in names)
    usual = " and ".join(_shown(own(name)) for name in names)
    note = Note(f"-D makes {made}; with {usual}, as in the source, there is no error")
    return Diagnostics([replace(error, notes=(*error.notes, note))])


def _shown(value: Value | Missing) -> str:
    return "a run-time size" if isinstance(value, Missing | Dynamic) else describe(value)
