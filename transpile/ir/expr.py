"""Expressions of the tile IR. Every conversion is a `Cast`: nothing later re-derives a type.

Equality is structural and ignores spans and the names of constants, so passes may compare freely.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.ir.dtypes import BOOL, INT32, DType
from tile2c.transpile.record import record

Scope = Literal["global", "shared", "fragment", "local", "variable", "barrier"]
VarKind = Literal["size", "scalar", "block", "thread", "loop", "temporary"]


@record(kw_only=True)
class Expr:
    """Every expression has a type, and a place in the source where it came from one."""

    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@record(kw_only=True)
class Const(Expr):
    """A number known at build time. `name` is the author's (`block_M`): it prints by it."""

    value: int | float | bool
    name: str | None = field(default=None, compare=False)


@record(kw_only=True)
class Var(Expr):
    """A named value that never changes while it is in scope. Names are unique within a function.

    size: symbolic tensor dimension; scalar: parameter; block: block index; thread: thread index
    (`threadIdx.x/y/z` as the author's name); loop: loop variable; temporary: bound by `Let`.
    """

    name: str
    kind: VarKind
    author: str | None = field(default=None, compare=False)  # the source's name, where it differs


@record(kw_only=True)
class Buffer:
    """A tensor parameter or an allocation. `variable` is a private mutable scalar: shape ()."""

    name: str
    scope: Scope
    shape: tuple[Expr, ...]
    dtype: DType
    strides: tuple[Expr, ...] | None = None  # in elements; None is row-major without gaps
    span: Span | None = field(default=None, compare=False, repr=False)
    quote: str = field(default="", compare=False, repr=False)  # the allocation, on one line
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)
    remark: str = field(default="", compare=False, repr=False)


@record(kw_only=True)
class Load(Expr):
    """One element of a buffer. Outside its shape a global tensor yields 0 (language.md 5.5)."""

    buffer: Buffer
    index: tuple[Expr, ...]


BinaryOp = Literal[
    "+", "-", "*", "/", "//", "%", "truncdiv", "truncmod", "ceildiv", "min", "max", "pow",
    "&", "|", "^", "<<", ">>",
]  # fmt: skip
CompareOp = Literal["==", "!=", "<", "<=", ">", ">="]


@record(kw_only=True)
class Binary(Expr):
    """Both sides and the result have one type. `//` and `%` floor; `/` is for floats only."""

    op: BinaryOp
    a: Expr
    b: Expr


@record(kw_only=True)
class Unary(Expr):
    op: Literal["-", "~", "not"]
    a: Expr


@record(kw_only=True)
class Compare(Expr):
    """Sides have one type; the result is bool."""

    op: CompareOp
    a: Expr
    b: Expr


@record(kw_only=True)
class Logical(Expr):
    """Short-circuit `and` / `or` of bools."""

    op: Literal["and", "or"]
    a: Expr
    b: Expr


@record(kw_only=True)
class Select(Expr):
    """`a if condition else b`. Lazy: only the chosen side is evaluated, so it guards loads."""

    condition: Expr
    a: Expr
    b: Expr
    lazy: bool = True


@record(kw_only=True)
class Cast(Expr):
    """Converts `a` to `dtype` as an assignment does (language.md 4.2)."""

    a: Expr


@record(kw_only=True)
class Reinterpret(Expr):
    """The same bits as another type of equal width."""

    a: Expr


@record(kw_only=True)
class Call(Expr):
    """A pure function by its canonical name: exp, exp2, log, sqrt, rsqrt, abs, floor, isnan, ..."""

    function: str
    args: tuple[Expr, ...]


def const(value: int, name: str | None = None, dtype: DType = INT32) -> Const:
    """An integer constant."""
    return Const(dtype=dtype, value=value, name=name)


def true() -> Const:
    return Const(dtype=BOOL, value=True)


AnyExpr = (
    Const | Var | Load | Binary | Unary | Compare | Logical | Select | Cast | Reinterpret | Call
)
