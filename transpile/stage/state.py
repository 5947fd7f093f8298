"""The state of an evaluation: where it stands, what it may still spend, how it fails."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from tile2c.transpile.diagnostics import Diagnostic, Diagnostics, InputError, Note, Span
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.read import Source
from tile2c.transpile.record import record
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Buffer
from tile2c.transpile.stage.device import Device
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.linear import number
from tile2c.transpile.stage.values import (
    Cell,
    DType,
    Expired,
    Foreign,
    LanguageName,
    NotReady,
    Poison,
    Poisoned,
    Scope,
    Unknown,
    Value,
)

FUEL = 300_000
MOST_CALLS = 50
MOST_DEPTH = 150


@record(frozen=False)
class Frame:
    """Where evaluation stands: the names in sight and the text that is evaluated."""

    scope: Scope
    source: Source
    path: tuple[str, ...] = ()  # functions and classes around, outermost first
    calls: tuple[Span, ...] = ()  # the calls that were inlined to get here, innermost first
    device: bool = False  # statements are traced, not executed
    once: frozenset[str] = frozenset()  # names that the function binds in one place only
    function: str = ""
    yielded: list[Value] | None = None  # of a generator, which is run to its end at once


@record(frozen=False)
class State:
    """What every part of the evaluator shares."""

    diagnostics: Diagnostics
    exact: bool
    frame: Frame
    fuel: int = FUEL
    order: int = 0
    constants: dict[str, Cell] = field(default_factory=dict)  # numbers that device code names
    taken: set[str] = field(default_factory=set)  # names that device code binds itself
    tracing: bool = False
    device: Device = field(default_factory=Device)  # of the target, for programs that ask for it
    stopped: Diagnostic | None = None  # why a module was not executed to its end
    # By the text that names hold where an element type is asked for: where it was asked for first.
    wrong_types: dict[str, Diagnostic] = field(default_factory=dict)

    def span(self, node: ast.AST | None) -> Span | None:
        return None if node is None else self.frame.source.span(node)

    def fail(
        self, code: str, message: str, node: ast.AST | None, help: str | None = None
    ) -> InputError:
        """The error to raise, with the inlined calls that led to it as notes."""
        return failure(code, message, self.span(node), notes=self._inlined(), help=help)

    def _inlined(self) -> tuple[Note, ...]:
        return tuple(Note("inlined from here", span) for span in self.frame.calls[:3])

    def burn(self, node: ast.AST, amount: int = 1) -> None:
        self.fuel -= amount
        if self.fuel < 0:
            raise self.fail(
                "T2C113",
                "evaluating this at build time takes too many steps; a loop may never end",
                node,
                help="`for i in T.serial(n)` makes it a loop of the kernel",
            )

    def known(self, value: Value, node: ast.AST | None, purpose: str) -> Value:
        """`value` where it is known now. Raises where it is not: `purpose` says who needs it."""
        if isinstance(value, Poison):
            raise Poisoned
        if isinstance(value, Unknown):
            note = (Note("it comes from here", value.span),) if value.span else ()
            quoted = self.frame.source.cut(self.frame.source.span(node)) if node else "this"
            raise failure(
                "T2C110",
                f"{quoted} cannot be evaluated without running the program, and {purpose} "
                f"needs it: {value.reason}",
                self.span(node),
                notes=note,
                help="pass the value as a parameter of the factory and fix it with -D NAME=VALUE",
            )
        if isinstance(value, Expired):
            bound = (Note("it is bound here", value.place),) if value.place is not None else ()
            raise failure(
                "T2C239",
                f"{value.name} is bound inside the `{value.region}` at line {value.bound.line} and "
                "cannot be used after it",
                self.span(node),
                notes=(*bound, *self._inlined()),
                help=f"declare it before: {value.name} = T.alloc_var(T.{value.dtype or 'float32'})",
            )
        return value

    def whole_number(self, value: Value, node: ast.AST | None, purpose: str) -> int:
        """An int that host code needs; a run-time size there makes the kernel not ready."""
        value = self.known(value, node, purpose)
        if isinstance(value, Expr):
            found = number(value)
            if found is not None:
                return found
            if value.sizes and not value.device:
                raise NotReady(min(value.sizes), f"{purpose} needs it", self.span(node))
        elif isinstance(value, int):
            return int(value)
        elif isinstance(value, float) and value.is_integer():
            return int(value)
        shown = ex.text(value) if isinstance(value, Expr) else describe(value)
        raise self.fail(
            "T2C401", f"{purpose} needs a number known at build time, not {shown}", node
        )

    def need_decided(self, value: Value, node: ast.AST | None, why: str) -> None:
        """Raises NotReady where a run-time size stands in the place of a build-time number."""
        if isinstance(value, Expr) and value.sizes and not value.device:
            name = min(value.sizes)
            raise NotReady(name, f"{why} depends on {name}", self.span(node))

    def truth(self, value: Value, node: ast.AST, purpose: str = "this condition") -> bool | None:
        """A host condition; None where a survey does not know it."""
        if isinstance(value, Expr):
            if (found := number(value)) is not None:
                return bool(found)
            if not value.device and value.sizes:
                raise NotReady(min(value.sizes), f"{purpose} depends on it", self.span(node))
            raise self.fail(
                "T2C243",
                "a value of the running kernel cannot decide a condition at build time",
                node,
                help="use T.if_then_else, or move the condition into the kernel itself",
            )
        if isinstance(value, Unknown) and not self.exact:
            return None
        value = self.known(value, node, purpose)
        return bool(value) if not isinstance(value, Foreign) else True

    @contextmanager
    def inside(self, frame: Frame) -> Iterator[None]:
        """Evaluates in another frame for a while."""
        outer, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = outer


def is_variable(value: Value) -> bool:
    """An `alloc_var`: reads like a number."""
    return isinstance(value, Buffer) and value.scope == "var"


def describe(value: Value) -> str:
    """A host value for a message."""
    match value:
        case DType():
            return value.name
        case Foreign() | LanguageName():
            return value.path
        case Buffer():
            return value.name
        case bool() | int() | float() | str() | None:
            return repr(value) if len(repr(value)) < 60 else f"{repr(value)[:57]}..."
        case list() | tuple():
            return f"[{', '.join(map(describe, value[:8]))}{', ...' if len(value) > 8 else ''}]"
        case _:
            return _KINDS.get(type(value).__name__, f"a {type(value).__name__}")


_KINDS = {
    "PrimFunc": "a kernel",
    "JitFunction": "a function that makes kernels",
    "Closure": "a function",
    "HostFunction": "a function",
    "MacroFunction": "a macro",
    "Expr": "a value of the kernel",
}
