"""Lowering for machines with threads.

reads   `ir.forms.Function`        writes  `lower.plan.Plan`
order   rename → gemms and warps → pinned layouts → shared layouts → leading fills → frames → steps →
        barriers → shared memory map → entries
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tile2c.transpile.diagnostics import Diagnostics, InputError
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.forms import Function, Launch
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.costs import warn_of_costs
from tile2c.transpile.lower.plan import Plan
from tile2c.transpile.lower.promises import promises
from tile2c.transpile.lower.simt.each_thread import warn_of_repeated_atomics
from tile2c.transpile.lower.simt.foreign import warn_of_sources
from tile2c.transpile.lower.simt.uses import functions_in
from tile2c.transpile.targets.simt import SimtTarget

MOST_PRIVATE_BYTES = 512 * 1024  # local memory of a thread, on chips of every vendor
_TYPES = frozenset(
    "Pack Ring TensorMap Shared UNROLL ROLLED infinity not_a_number".split()
)  # of helpers, called by none


def lower(function: Function, target: SimtTarget, diagnostics: Diagnostics) -> Plan | None:
    """The plan, or None when a diagnostic says why there is none."""
    from tile2c.transpile.lower.rename import author_names, rename_reserved
    from tile2c.transpile.lower.simt.ways import lower_function

    try:
        _check_types(function, target)
        plan = lower_function(function, target, diagnostics)
        # Which helper functions the text calls is known only now; an author's name must hide none.
        hidden = author_names(function) & (functions_in(plan) | _TYPES)
        if hidden - target.dialect.reserved:
            plan = lower_function(rename_reserved(function, hidden), target, diagnostics)
    except InputError as problem:
        diagnostics.add(problem.diagnostic)
        return None
    warn_of_costs(plan, function, target, diagnostics)
    warn_of_sources(function, target, diagnostics)
    warn_of_repeated_atomics(function, diagnostics)
    plan = replace(plan, requires=tuple(dict.fromkeys((*plan.requires, *promises(function)))))
    return _with_usable_entries(plan, target)


def _check_types(function: Function, target: SimtTarget) -> None:
    """Raises InputError for an argument or a buffer of a type that the dialect cannot say."""
    told = [(p.name, p.tensor or p.scalar, p.span) for p in function.params]
    told += [(x.name, x, x.span) for launch in function.launches for x in launch.buffers]
    for name, value, span in told:
        if value is not None and value.dtype.name not in target.dialect.types:
            message = f"{name} is {value.dtype}, which {target.name} does not have"
            raise failure("T2C557", message, span or function.span)
    for launch in function.launches:
        _check_private(launch, target)


def _check_private(launch: Launch, target: SimtTarget) -> None:
    """Raises InputError where arrays of each thread, spilled or not, cannot be there at all."""
    x, y, z = launch.threads
    for buffer in launch.buffers:
        if buffer.scope not in ("local", "fragment"):
            continue
        elements = prod(b.known(extent) or 1 for extent in buffer.shape)
        if buffer.scope == "fragment":
            elements = -(-elements // (x * y * z))
        size = elements * max(buffer.dtype.bits // 8, 1)
        if size > MOST_PRIVATE_BYTES:
            raise failure(
                "T2C558",
                f"{buffer.name} takes {size} bytes of every thread, and {target.name} has at most "
                f"{MOST_PRIVATE_BYTES}",
                buffer.span or launch.span,
                help="try a smaller tile",
            )


def _with_usable_entries(plan: Plan, target: SimtTarget) -> Plan:
    """Exported symbols that C, the dialect or the file itself would understand otherwise get a word."""
    from tile2c.transpile.lower.rename import entry_name

    taken = functions_in(plan) | {str(constant.name) for constant in plan.constants}
    taken |= _TYPES | target.dialect.reserved
    names = {entry.name: entry_name(entry.name, frozenset(taken)) for entry in plan.entries}
    return replace(
        plan,
        entries=tuple(replace(entry, name=names[entry.name]) for entry in plan.entries),
        launches=tuple(replace(launch, entry=names[launch.entry]) for launch in plan.launches),
    )
