"""What host code computes with, beside Python's own immutables and containers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.read import Source
from tile2c.transpile.record import record
from tile2c.transpile.stage.expressions import Expr

if TYPE_CHECKING:
    from tile2c.transpile.stage.invoke import Caller

# A value of the program that is read: a Python object or one of the classes below. The program is
# dynamically typed, so what a value is can only be asked, never declared.
Value: TypeAlias = Any


class DType(str):
    """An element type by its canonical name; a string, as programs compare and slice it."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return str(self)


class ClassName(str):
    """A class among the names around a function."""

    __slots__ = ()


@record(eq=False)
class Unknown:
    """A value that cannot be had without running the program, and why."""

    reason: str
    span: Span | None = None


@record(eq=False)
class Poison:
    """The value of what was already reported; using it reports nothing again."""


@record(eq=False)
class Expired:
    """A name after the run-time region that bound it."""

    name: str
    bound: Span
    region: str  # "if", "for", "while"
    dtype: str | None = None
    place: Span | None = None  # of the name where it was bound


@record
class Foreign:
    """Something of a package that is not read: `torch.cuda`."""

    path: str


@record
class LanguageName:
    """`T.path`; the language itself when `path` is empty."""

    path: str


@record
class ToolName:
    """`tilelang.path`; the package itself when `path` is empty."""

    path: str


@record(eq=False)
class HostFunction:
    """A function that the evaluator has itself: a builtin, or one of a known module."""

    name: str
    run: Callable[[Caller, list[Value], dict[str, Value], ast.AST], Value]


@record(eq=False)
class BoundMethod:
    """A method looked up on a host value."""

    owner: Value
    name: str


@record
class HostTensor:
    """A framework's tensor, of which only shape and dtype are known."""

    shape: tuple[Value, ...]
    dtype: Value


@record(eq=False, frozen=False)
class Cell:
    """What a name is bound to."""

    name: str
    value: Value
    order: int  # of definition, over the whole run
    nameable: bool = False  # a number that device code may use by this name
    spelling: Expr | None = None  # how device code writes it, when not by its own name
    comment: str | None = None  # behind the statement that bound it


@record(eq=False, frozen=False)
class Scope:
    """The names of one call, inside those of the function's definition."""

    parent: Scope | None
    cells: dict[str, Cell] = field(default_factory=dict)
    outer: dict[str, Scope] = field(default_factory=dict)  # names declared global or nonlocal

    def find(self, name: str) -> Cell | None:
        scope: Scope | None = self
        while scope is not None:
            cell = scope.cells.get(name)
            if cell is not None:
                return cell
            scope = scope.parent
        return None

    def root(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


FunctionNode: TypeAlias = ast.FunctionDef | ast.Lambda


@record(eq=False, frozen=False)
class Closure:
    """A function of the program with the scope of its definition."""

    node: FunctionNode
    scope: Scope
    source: Source
    name: str
    defaults: Mapping[str, Value]
    path: tuple[str, ...]  # enclosing functions and classes, outermost first
    owner: Value = None  # `self` of a bound method
    arguments: Mapping[str, Value] = field(default_factory=dict)  # of the factories around it


@record(eq=False)
class LayoutMap:
    """`T.Layout`: where the element of an index is stored. Of buffers on the chip it is a hint."""

    forward: Closure


@record(eq=False)
class ThreadReducer:
    """`T.comm_reducer`: how two values become one, and the value that changes nothing."""

    combine: Closure
    identity: Expr


@record(eq=False, frozen=False)
class MacroFunction:
    """`@T.macro`: device code that is inlined."""

    closure: Closure


@record(eq=False, frozen=False)
class PrimFunc:
    """`@T.prim_func`: a kernel, once its closure is known."""

    closure: Closure


@record(eq=False, frozen=False)
class JitFunction:
    """`@tilelang.jit` around a factory, an eager function or a prim_func."""

    inner: Closure | PrimFunc
    configs: Value = None  # of @tilelang.autotune


@record(eq=False)
class Decorated:
    """A function of a class under `property`, `staticmethod` or `classmethod`."""

    kind: str
    function: Value


@record(eq=False, frozen=False)
class HostClass:
    """A class of the program."""

    name: str
    node: ast.ClassDef
    scope: Scope  # its attributes and methods
    source: Source
    bases: tuple[Value, ...]
    path: tuple[str, ...]
    fields: tuple[
        tuple[str, Value], ...
    ] = ()  # of a dataclass or NamedTuple; `MISSING` if required


@record(eq=False, frozen=False)
class Instance:
    """An object of a `HostClass`, or a bag of attributes where `cls` is None."""

    cls: HostClass | None
    attributes: dict[str, Value]
    made_with: Mapping[str, Value] = field(default_factory=dict)  # arguments of its class


class Missing:
    """The one value that stands for "no default"."""


MISSING = Missing()


class NotReady(Exception):
    """Host code has to know a size or parameter that nothing fixes."""

    def __init__(self, name: str, why: str, span: Span | None) -> None:
        super().__init__(f"{name} has to be known: {why}")
        self.name, self.why, self.span = name, why, span


class Poisoned(Exception):
    """An operand was already reported."""
