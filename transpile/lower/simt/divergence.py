"""Which values differ between the threads of a block, and where threads part."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Call, Expr, Load, Var
from tile2c.transpile.ir.forms import (
    Atomic,
    Declare,
    For,
    Foreign,
    If,
    Jump,
    Let,
    Parallel,
    Pipelined,
    Stmt,
    Store,
    While,
)
from tile2c.transpile.ir.walk import expressions, parts, regions, statements, writes
from tile2c.transpile.lower.simt.warp import BETWEEN_LANES


class Divergence:
    """Names of temporaries, variables and private arrays whose value differs by thread."""

    def __init__(self, body: Sequence[Stmt]) -> None:
        self.names: set[str] = set()
        before = -1
        while (
            len(self.names) != before
        ):  # a variable set late in a loop is read early in the next round
            before = len(self.names)
            self._visit(body, False)

    def differs(self, expr: Expr) -> bool:
        """Whether threads may see different values of the expression."""
        for part in parts(expr):
            if isinstance(part, Var) and (part.kind == "thread" or part.name in self.names):
                return True
            if isinstance(part, Load) and part.buffer.name in self.names:
                return True
            if isinstance(part, Call) and part.function in BETWEEN_LANES:
                return True
        return False

    def _visit(self, body: Sequence[Stmt], under: bool) -> None:
        for stmt in body:
            match stmt:
                case Let() if self.differs(stmt.value):
                    self.names.add(stmt.var.name)
                case Atomic() if stmt.result is not None:
                    self.names.add(stmt.result.name)
                case Foreign():
                    self.names |= {x.name for x in writes(stmt)}
                case Declare():
                    if under or (stmt.init is not None and self.differs(stmt.init)):
                        self.names.add(stmt.buffer.name)
                case Store() if stmt.buffer.scope in ("variable", "local"):
                    exprs = (*stmt.index, stmt.value)
                    if under or any(map(self.differs, exprs)):
                        self.names.add(stmt.buffer.name)
                case If():
                    inside = under or self.differs(stmt.condition)
                    self._visit(stmt.then, inside)
                    self._visit(stmt.orelse, inside)
                case For():
                    own = self.differs(stmt.start) or self.differs(stmt.stop)
                    if own:
                        self.names.add(stmt.var.name)
                    self._visit(stmt.body, under or own or self.leaves(stmt.body))
                case Pipelined():
                    self._visit(stmt.body, under)
                case While():
                    own = self.differs(stmt.condition) or self.leaves(stmt.body)
                    self._visit(stmt.body, under or own)
                case Parallel():
                    self._visit(stmt.body, True)  # each thread runs its own iterations

    def leaves(
        self, body: Sequence[Stmt], kinds: Sequence[str] = ("break", "continue", "return")
    ) -> bool:
        """Whether only some threads jump out of this list of statements."""
        return self._jumps(body, False, kinds)

    def _jumps(self, body: Sequence[Stmt], under: bool, kinds: Sequence[str]) -> bool:
        for stmt in body:
            if isinstance(stmt, Jump) and under and stmt.kind in kinds:
                return True
            if isinstance(stmt, If):
                inside = under or self.differs(stmt.condition)
                if self._jumps(stmt.then, inside, kinds) or self._jumps(stmt.orelse, inside, kinds):
                    return True
            if isinstance(stmt, For | While | Pipelined):
                own = isinstance(stmt, While) and self.differs(stmt.condition)
                if self._jumps(stmt.body, under or own, [k for k in kinds if k == "return"]):
                    return True
        return False


def check_bounds(body: Sequence[Stmt]) -> None:
    """Refuses statements of the whole block whose bounds or values differ between threads."""
    divergence = Divergence(body)
    for stmt in statements(tuple(body)):
        read, written = regions(stmt)
        if not written or any(part.buffer.scope == "local" for part in (*read, *written)):
            continue
        for expr in expressions(stmt):
            if divergence.differs(expr):
                name = written[0].buffer.name
                raise failure(
                    "T2C564",
                    f"`{stmt.quote}` is done once by the whole block, but what it names differs "
                    "between threads",
                    expr.span or stmt.span,
                    help=f"name elements, as in {name}[0]: then every thread does it",
                )


def lasts(condition: Expr, body: Sequence[Stmt]) -> bool:
    """Whether a condition tested in front of these statements holds all through them."""
    read = {part.buffer.name for part in parts(condition) if isinstance(part, Load)}
    return not read & {buffer.name for stmt in statements(tuple(body)) for buffer in writes(stmt)}
