"""The plan: a kernel for one target with every decision taken, as a small C program and its reasons.

The program is made of the statements below; each has one template, which lays it out and computes
nothing. Beside it stand the decisions (`Choice`, layouts, shared-memory map, arcs) for `--emit plan`.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.ir.dtypes import INT32, DType
from tile2c.transpile.ir.expr import Const, Expr, Var, const
from tile2c.transpile.record import record

# ---- expressions that only a plan has


@record(kw_only=True)
class Element(Expr):
    """`array[s0][s1]...` of a C array, or `pointer[offset]`."""

    array: str
    subscripts: tuple[Expr, ...]


@record(kw_only=True)
class CCall(Expr):
    """A call of a C function by name; `template` are its explicit template arguments."""

    function: str
    args: tuple[Expr, ...]
    template: tuple[Expr, ...] = ()


@record(kw_only=True)
class Address(Expr):
    """`&element`; its type is that of the element."""

    element: Expr


@record(kw_only=True)
class Text(Expr):
    """A string literal; its type says nothing."""

    text: str


@record(kw_only=True)
class Wide(Expr):
    """`size_t(a)`: index arithmetic goes on in 64 bits from here."""

    a: Expr


# ---- statements


@record(kw_only=True)
class CStmt:
    """A line or a block of C. `comments` stand above it, `remark` behind it."""

    comments: tuple[str, ...] = ()
    remark: str = ""


@record(kw_only=True)
class Declarator:
    """One name of a declaration, with its array dimensions and its value."""

    name: str
    value: Expr | None = None
    dims: tuple[Expr, ...] = ()
    zero: bool = False  # `= {}`


@record(kw_only=True)
class Local(CStmt):
    """`const int i = chunk / 4, k = chunk % 4 * 8;`: names of one type.

    `ctype` overrides the spelling of `dtype` (`auto`, `const half*`). `align` in bytes.
    """

    dtype: DType
    names: tuple[Declarator, ...]
    const: bool = True
    ctype: str | None = None
    shared: bool = False
    align: int | None = None


@record(kw_only=True)
class Assign(CStmt):
    target: Expr
    value: Expr
    op: Literal["=", "+=", "-=", "*=", "/=", "&=", "|=", "^="] = "="


@record(kw_only=True)
class Do(CStmt):
    """A call for its effect."""

    call: Expr


@record(kw_only=True)
class Loop(CStmt):
    """`for (int var = start; var < stop; var += step) body`."""

    var: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[CStmt, ...]
    unroll: bool = False
    rolled: bool = False  # its code stands once: the compiler must not unroll it
    rolled_unaligned: bool = False  # so in the variant for rows that start anywhere
    dtype: DType


def counting(
    var: str,
    stop: Expr | int,
    body: tuple[CStmt, ...],
    *,
    start: int = 0,
    step: int = 1,
    unroll: bool = False,
) -> Loop:
    """`for (int var = start; var < stop; var += step) body`."""
    end = const(stop) if isinstance(stop, int) else stop
    first, by = const(start), const(step)
    return Loop(var=var, start=first, stop=end, step=by, body=body, unroll=unroll, dtype=INT32)


@record(kw_only=True)
class Repeat(CStmt):
    """`while (condition) body`."""

    condition: Expr
    body: tuple[CStmt, ...]


@record(kw_only=True)
class Branch(CStmt):
    """`if (condition) then else orelse`; `constexpr` decides it at compile time."""

    condition: Expr
    then: tuple[CStmt, ...]
    orelse: tuple[CStmt, ...] = ()
    constexpr: bool = False


@record(kw_only=True)
class Escape(CStmt):
    """`if (condition) continue;` — or break, return; unconditional without a condition."""

    kind: Literal["continue", "break", "return"]
    condition: Expr | None = None


@record(kw_only=True)
class Sync(CStmt):
    """A barrier or a wait; `remark` says what it orders, `arcs` are its reasons.

    kind `barrier`: all threads of the block meet. `author`: the author's own barrier, kept.
    """

    kind: Literal["barrier", "author"]
    arcs: tuple[Arc, ...] = ()
    call: Expr | None = None  # how only some of the threads meet


@record(kw_only=True)
class Lambda(CStmt):
    """`auto name = [&](int p) { body };`: text written once and called from several places."""

    name: str
    params: tuple[str, ...]
    body: tuple[CStmt, ...]


@record(kw_only=True)
class Scope(CStmt):
    """`{ body }`: names that end here."""

    body: tuple[CStmt, ...]


@record(kw_only=True)
class Section(CStmt):
    """Statements that belong together, under one comment; lays out as they are."""

    body: tuple[CStmt, ...]
    blank: bool = True  # an empty line in front
    span: Span | None = field(default=None, compare=False, repr=False)


# ---- decisions


@record(kw_only=True)
class Arc:
    """One dependence between two steps, which a barrier or a wait has to order.

    `witness` says when it can bite; `proven` is False where a dependence could only not be disproved.
    """

    source: str  # quoted statement
    sink: str
    buffer: str
    kind: Literal["RAW", "WAR", "WAW"]
    loop: str | None  # carried by this loop
    distance: int
    ring: str = ""  # the buffer has several copies, one a round of this loop
    proven: bool = True
    witness: str = "always"
    taker: str = ""  # the array that comes in the same bytes, where the sink touches another one


@record(kw_only=True)
class Choice:
    """One heuristic decision, so that tables, `-D` and people can override it."""

    name: str
    value: str
    reason: str


@record(kw_only=True)
class Placed:
    """A shared array: what it holds, its layout in words, its size."""

    name: str
    bytes: int
    layout: str
    versions: int = 1
    offset: int | None = None  # in the struct that holds them all, where there is one
    launch: int = 0  # of the function's, by place: their arrays are never there together


@record(kw_only=True)
class Helper:
    """A small device function of the text: its template under `helpers/` and the template's fields."""

    template: str
    fields: tuple[tuple[str, str | int | bool], ...] = ()


@record(kw_only=True)
class EntryParam:
    """One parameter of an entry point, in order; `remark` is its shape."""

    name: str
    kind: Literal["tensor", "size", "scalar", "workspace", "tensor_map"]
    dtype: DType
    written: bool = True
    restrict: bool = True
    remark: str = ""
    map: TensorMap | None = None
    value: Expr | None = None  # of a size that the host computes


@record(kw_only=True)
class TensorMap:
    """What the host has to encode for a bulk tensor copy. Innermost dimension first."""

    tensor: str
    dtype: DType
    dims: tuple[Expr, ...]
    strides: tuple[Expr, ...]  # bytes, of dimensions 1 and up
    box: tuple[int, ...]
    swizzle: Literal["none", "32B", "64B", "128B"]
    element_strides: tuple[int, ...] = ()
    l2: str = "128B"
    # Of im2col; the box then counts channels and pixels.
    corners: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    workspace: str = ""  # the scratch tensor that it describes in the tensor's stead


@record(kw_only=True)
class Entry:
    """An `extern "C"` kernel. With `calls` it only forwards to the body with these template arguments."""

    name: str
    params: tuple[EntryParam, ...]
    threads: tuple[int, int, int]
    body: tuple[CStmt, ...]
    min_blocks: int | None = None
    calls: str | None = None
    comments: tuple[str, ...] = ()


@record(kw_only=True)
class Body:
    """A device function template shared by several entries: `template <int width>`."""

    name: str
    template: tuple[str, ...]
    params: tuple[EntryParam, ...]
    body: tuple[CStmt, ...]
    comments: tuple[str, ...] = ()


@record(kw_only=True)
class LaunchPlan:
    """One possible launch: of each group the first whose `when` holds is run."""

    group: int
    when: str | None
    entry: str
    grid: tuple[Expr, Expr, Expr]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    cluster: tuple[int, int, int] | None = None
    params: tuple[EntryParam, ...] | None = None  # what is passed, where that is not what is named
    tiles: tuple[Expr, ...] = ()  # the author's grid, where blocks take its tiles in turn


@record(kw_only=True)
class Workspace:
    """A scratch tensor: where it starts in the workspace and its size, in bytes."""

    name: str
    offset: Expr
    bytes: Expr


@record(kw_only=True)
class TensorArg:
    """A tensor of the author's signature with the role the kernel gives it."""

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...] | None
    role: Literal["in", "out", "inout", "unused"]  # unused: by one of several launches


@record(kw_only=True)
class ScalarArg:
    name: str
    dtype: DType


@record(kw_only=True)
class Plan:
    """Everything rendering needs."""

    name: str
    summary: str
    comments: tuple[str, ...]
    args: tuple[TensorArg | ScalarArg, ...]
    sizes: tuple[Var, ...]
    constants: tuple[Const, ...]
    headers: tuple[str, ...]
    helpers: tuple[Helper, ...]
    bodies: tuple[Body, ...]
    entries: tuple[Entry, ...]
    launches: tuple[LaunchPlan, ...]
    launch_note: str
    size_note: str
    placed: tuple[Placed, ...] = ()
    layouts: tuple[tuple[str, str], ...] = ()  # fragment -> layout in words
    choices: tuple[Choice, ...] = ()
    arcs: tuple[Arc, ...] = ()
    unproven: int = 0
    requires: tuple[str, ...] = ()  # conditions on addresses that every call must meet
    notes: tuple[str, ...] = ()  # further lines of the header comment
    sources: tuple[str, ...] = ()  # the program's own C text, in front of the kernels
    workspace: tuple[Workspace, ...] = ()  # scratch that the caller gives, in order
    # Needed where this holds alone; the kernel does without, more slowly.
    workspace_when: str = ""
