"""Functions with several launches, or with scratch memory: one plan from those of the launches.

The first launch's entry has the kernel's name; each other one says what it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Compare, Const, Expr, Logical, Unary, Var, const
from tile2c.transpile.ir.forms import Function, Launch
from tile2c.transpile.ir.walk import loads, statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import LaunchPlan, Plan, ScalarArg, TensorArg, Workspace
from tile2c.transpile.lower.simt.helper_order import ordered

T = TypeVar("T")
Arg = TensorArg | ScalarArg
One = Callable[[Function, Launch, Sequence[Plan]], Plan]
ALIGN = 256  # bytes, of each scratch tensor
_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def lower_launches(function: Function, lower: One, printer: Callable[[Expr], str]) -> Plan:
    """Plans of all launches as one. `lower` makes that of a function with a single launch."""
    if not function.launches:
        raise failure("T2C404", f"{function.name} launches nothing", function.span)
    plans: list[Plan] = []
    taken: set[str] = set()
    group = 0
    for number, launch in enumerate(function.launches):
        name = _entry_name(function.name, launch, number, taken)
        taken.add(name)
        single = replace(function, name=name, launches=(launch,))
        plan = lower(single, launch, plans)
        plans.append(_conditional(plan, launch, group, printer))
        group += 1 + max((part.group for part in plan.launches), default=0)
    whole = plans[0] if len(plans) == 1 else _joined(function, plans)
    return _with_workspace(whole, function, plans)


def _entry_name(name: str, launch: Launch, number: int, taken: set[str]) -> str:
    if number == 0:
        return name
    for stmt in statements(launch.body):
        for buffer in writes(stmt):
            if buffer.scope == "global" and f"{name}_{buffer.name}" not in taken:
                return f"{name}_{buffer.name}"
    word = _ORDINALS[number - 1] if number <= len(_ORDINALS) else f"launch_{number + 1}"
    return f"{name}_{word}"


def _conditional(plan: Plan, launch: Launch, group: int, printer: Callable[[Expr], str]) -> Plan:
    """The plan's launches from this group on, under the author's condition."""
    condition = host_condition(launch.when, printer) if launch.when is not None else None

    def moved(part: LaunchPlan) -> LaunchPlan:
        both = [f"({text})" if condition and part.when else text
                for text in (condition, part.when) if text]  # fmt: skip
        return replace(part, group=group + part.group, when=" and ".join(both) or None)

    return replace(plan, launches=tuple(map(moved, plan.launches)))


def host_condition(expr: Expr, printer: Callable[[Expr], str]) -> str:
    """A condition over sizes and scalars as the manifest says it."""
    if isinstance(expr, Logical):
        sides = (host_condition(expr.a, printer), host_condition(expr.b, printer))
        return f"({sides[0]}) {expr.op} ({sides[1]})"
    if isinstance(expr, Unary) and expr.op == "not":
        return f"not ({host_condition(expr.a, printer)})"
    if isinstance(expr, Compare) and not list(loads(expr)):
        return f"{printer(b.for_host(expr.a))} {expr.op} {printer(b.for_host(expr.b))}"
    if isinstance(expr, Const):
        return str(int(expr.value))
    if isinstance(expr, Var):
        return expr.name
    raise failure(
        "T2C509",
        "a launch under this condition: it has to compare sizes and integer parameters",
        expr.span,
        help="pass the number that it depends on as a parameter, or put the condition into the kernel",
    )


def _joined(function: Function, plans: Sequence[Plan]) -> Plan:
    first = plans[0]
    constants = {c.name: c for plan in plans for c in plan.constants}
    authors = {c.name for c in function.constants}
    args = tuple(
        _role(arg, [plan.args[place] for plan in plans]) for place, arg in enumerate(first.args)
    )
    return replace(
        first,
        name=function.name,
        args=args,
        constants=(
            *(c for c in function.constants if c.name in constants),
            *(c for name, c in constants.items() if name not in authors),
        ),
        headers=_all(plan.headers for plan in plans),
        # Overloads of all launches stand above the templates that call them.
        helpers=tuple(ordered(list(_all(plan.helpers for plan in plans)))),
        bodies=tuple(body for plan in plans for body in plan.bodies),
        entries=tuple(entry for plan in plans for entry in plan.entries),
        launches=tuple(launch for plan in plans for launch in plan.launches),
        launch_note="; then ".join(f"{plan.entries[0].name}: {plan.launch_note}" for plan in plans),
        placed=tuple(replace(x, launch=k) for k, plan in enumerate(plans) for x in plan.placed),
        layouts=tuple(part for plan in plans for part in plan.layouts),
        choices=tuple(part for plan in plans for part in plan.choices),
        arcs=tuple(arc for plan in plans for arc in plan.arcs),
        unproven=sum(plan.unproven for plan in plans),
        requires=_all(plan.requires for plan in plans),
        notes=_all(plan.notes for plan in plans),
    )


def _all(groups: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    """Everything once, in order."""
    return tuple(dict.fromkeys(part for group in groups for part in group))


def _role(arg: Arg, same: Sequence[Arg]) -> Arg:
    """What all launches together do with an argument."""
    if isinstance(arg, ScalarArg):
        return arg
    roles = {other.role for other in same if isinstance(other, TensorArg)} - {"unused"}
    if roles <= {"in"}:
        return replace(arg, role="in")
    return replace(arg, role="out" if roles == {"out"} else "inout")


def _with_workspace(whole: Plan, function: Function, plans: Sequence[Plan]) -> Plan:
    """The plan with the author's scratch tensors, and behind them those that lowering added.

    These are only asked for where some launch wants them, unless the author's have to be there anyway.
    """
    authors = _workspace(function)
    parts = list(authors)
    for part in {part.name: part for plan in plans for part in plan.workspace}.values():
        offset = b.add(parts[-1].offset, parts[-1].bytes) if parts else const(0)
        parts.append(replace(part, offset=offset))
    wanted = dict.fromkeys(plan.workspace_when for plan in plans if plan.workspace_when)
    one = len(wanted) == 1
    when = "" if authors else " or ".join(text if one else f"({text})" for text in wanted)
    return replace(whole, workspace=tuple(parts), workspace_when=when)


def _workspace(function: Function) -> tuple[Workspace, ...]:
    """Scratch tensors of all launches, one behind the other; each starts aligned."""
    found: dict[str, Workspace] = {}
    offset: Expr = const(0)
    for launch in function.launches:
        for buffer in launch.buffers:
            if buffer.scope != "global" or buffer.name in found:
                continue
            size: Expr = const(buffer.dtype.bytes)
            for extent in buffer.shape:
                size = b.mul(b.for_host(extent), size)
            size = b.mul(b.ceil_div(size, const(ALIGN)), const(ALIGN))
            found[buffer.name] = Workspace(name=buffer.name, offset=offset, bytes=size)
            offset = b.add(offset, size)
    return tuple(found.values())
