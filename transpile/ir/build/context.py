"""State of one build: names in scope, places in the source, and how a problem is reported."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, NoReturn

from tile2c.transpile.diagnostics import Diagnostics, Note, Span
from tile2c.transpile.ir.build.literals import Host, natural_type
from tile2c.transpile.ir.build.source import NormalKernel
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Buffer, Const, Expr, Var
from tile2c.transpile.ir.forms import Barriers, BlockOrder, Stmt
from tile2c.transpile.record import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst
    from tile2c.transpile.ir.build.tile_views import TileView


class Stop(Exception):
    """The statement cannot be built; the problem has been reported."""


@record
class Value:
    """An expression being built. `host` is set where Python knows the number (a literal, by name
    or not): such a value has no firm type yet."""

    expr: Expr
    host: Host | None = None
    narrow: DType | None = None  # the operands' type, where small integers are computed in 32 bits

    @property
    def dtype(self) -> DType:
        return self.expr.dtype if self.host is None else natural_type(self.host)

    @property
    def literal(self) -> bool:
        """Whether it is a bare number, without a name the reader would miss."""
        return self.host is not None and isinstance(self.expr, Const) and self.expr.name is None


class Poison:
    """Stands for a name whose definition was wrong; its uses are not reported again."""


Binding = Value | Buffer | Poison


@record(frozen=False)
class Scopes:
    """Names by region. A name that went out of scope is remembered, to say so."""

    levels: list[dict[str, Binding]] = field(default_factory=lambda: [{}])
    gone: dict[str, str] = field(default_factory=dict)  # name -> the region it was bound in

    def find(self, name: str) -> Binding | None:
        for level in reversed(self.levels):
            if name in level:
                return level[name]
        return None

    def bind(self, name: str, binding: Binding) -> None:
        self.levels[-1][name] = binding
        self.gone.pop(name, None)

    @contextmanager
    def region(self, what: str) -> Iterator[None]:
        self.levels.append({})
        try:
            yield
        finally:
            for name in self.levels.pop():
                for level in self.levels:  # an outer binding of it has been replaced: gone as well
                    level.pop(name, None)
                self.gone[name] = what


@record(frozen=False)
class Names:
    """Gives every variable and buffer a name of its own; the first of a name keeps it."""

    reserved: set[str]  # every identifier of the module: a made-up name avoids all of them
    taken: set[str] = field(default_factory=set)

    def unique(self, name: str) -> str:
        found, number = name, 2
        while found in self.taken or (found != name and found in self.reserved):
            found, number = f"{name}_{number}", number + 1
        self.taken.add(found)
        return found

    def made_up(self, name: str) -> str:
        """A name for something that has none in the source."""
        found, number = name, 2
        while found in self.taken or found in self.reserved:
            found, number = f"{name}_{number}", number + 1
        self.taken.add(found)
        return found


@record(frozen=False)
class Builder:
    """Everything the functions of this folder share while one kernel is built."""

    kernel: NormalKernel
    diagnostics: Diagnostics
    names: Names
    scopes: Scopes = field(default_factory=Scopes)
    constants: list[Const] = field(default_factory=list)
    sizes: list[Var] = field(default_factory=list)
    # of the launch that is being built
    buffers: list[Buffer] = field(default_factory=list)
    grid: tuple[Expr, ...] = ()
    blocks: tuple[Var, ...] = ()
    threads: tuple[int, int, int] = (1, 1, 1)
    thread_vars: dict[int, Var] = field(default_factory=dict)  # by dimension
    comments: list[str] = field(default_factory=list)  # waiting for the next statement
    # where we are
    at: list[Span | None] = field(default_factory=lambda: [None])  # innermost place known so far
    loops: list[str] = field(default_factory=list)  # kinds of the enclosing loops
    parallel_vars: set[str] = field(default_factory=set)  # variables of enclosing T.Parallel loops
    divergent: int = 0  # enclosing conditions that depend on the thread
    roles: int = 0  # enclosing `with T.ws(...)`
    barriers: list[Barriers] = field(default_factory=list)  # of the launch, in order
    by_thread: set[str] = field(default_factory=set)  # names whose value differs by thread
    swizzle: BlockOrder | None = None
    cluster: tuple[int, int, int] = (1, 1, 1)
    sources: list[str] = field(default_factory=list)  # C text of the program's own
    views: list[Buffer] = field(default_factory=list)  # tensors under another shape
    assumptions: list[Expr] = field(default_factory=list)
    promises: list[Expr] = field(default_factory=list)  # of the launch at hand
    numbers_read: set[str] = field(default_factory=set)  # temporaries made of what tensors hold
    jumps: set[str] = field(default_factory=set)  # kinds of those so far in the launch at hand
    kernel_level: int = 0  # levels of scopes around the kernel's own list of statements
    launch_level: int | None = None  # and around the launch's own; None between launches
    # statements that have to run before the one that is being built
    reducers: dict[str, str] = field(default_factory=dict)  # fragments that gather -> operation
    pending: list[Stmt] = field(default_factory=list)
    tile_views: dict[str, TileView] = field(default_factory=dict)  # of the launch: whose storage

    @property
    def in_parallel(self) -> bool:
        return "parallel" in self.loops

    def span(self, node: cst.CSTNode | None) -> Span | None:
        """The place of a node, or of the nearest thing around it that has one."""
        if node is not None:
            origin = self.kernel.origins.get(node)
            if origin is not None:
                return origin.span
        return self.at[-1]

    @contextmanager
    def within(self, node: cst.CSTNode) -> Iterator[None]:
        self.at.append(self.span(node))
        try:
            yield
        finally:
            self.at.pop()

    def error(
        self,
        code: str,
        message: str,
        node: cst.CSTNode | None,
        *,
        notes: tuple[Note, ...] = (),
        help: str | None = None,
    ) -> None:
        notes = (*notes, *self._expansion(node))
        self.diagnostics.error(code, message, self.span(node), notes=notes, help=help)

    def warning(
        self,
        code: str,
        message: str,
        node: cst.CSTNode | None,
        *,
        notes: tuple[Note, ...] = (),
        help: str | None = None,
    ) -> None:
        notes = (*notes, *self._expansion(node))
        self.diagnostics.warning(code, message, self.span(node), notes=notes, help=help)

    def fail(
        self,
        code: str,
        message: str,
        node: cst.CSTNode | None,
        *,
        notes: tuple[Note, ...] = (),
        help: str | None = None,
    ) -> NoReturn:
        """Reports an error and gives the statement up."""
        self.error(code, message, node, notes=notes, help=help)
        raise Stop

    def _expansion(self, node: cst.CSTNode | None) -> tuple[Note, ...]:
        origin = self.kernel.origins.get(node) if node is not None else None
        if origin is None:
            return ()
        return tuple(Note("expanded from here", span) for span in origin.expanded_from)


def allocated_here(buffer: Buffer) -> tuple[Note, ...]:
    """The note that leads to a buffer's definition."""
    what = "declared" if buffer.scope == "global" else "allocated"
    return (Note(f"{buffer.name} is {what} here", buffer.span),) if buffer.span else ()
