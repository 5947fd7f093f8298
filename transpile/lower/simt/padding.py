"""What fragments hold where their layout reaches past their shape, so that reductions need not look.

Padding is computed like everything else, from zeros where a load would leave its tensor. Where it is
known to hold the value that changes nothing, a reduction takes it along.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.expr import Binary, Call, Cast, Const, Expr, Load, Select, Var, const
from tile2c.transpile.ir.forms import For, If, Parallel, Pipelined, Reduce, Stmt, Store, While
from tile2c.transpile.ir.walk import statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.frames import Frames
from tile2c.transpile.lower.simt.iteration import ParallelLoop, only_fragments
from tile2c.transpile.lower.simt.reduce import identity

Number = float | int
Held = dict[tuple[str, int], Number]  # (fragment, dimension) -> what lies past that dimension's end


def harmless_padding(ctx: Context, body: Sequence[Stmt], frames: Frames) -> set[int]:
    """Reductions (by id) whose source holds nothing past its end that would change their result."""
    found: set[int] = set()
    _Padding(ctx, frames, found).walk(body, {})
    return found


class _Padding:
    def __init__(self, ctx: Context, frames: Frames, found: set[int]) -> None:
        self.ctx, self.frames, self.found = ctx, frames, found

    def walk(self, body: Sequence[Stmt], held: Held) -> None:
        """Follows the statements; `held` is what is known, and is kept up to date."""
        for stmt in body:
            if isinstance(stmt, Parallel):
                self._loop(stmt, held)
                continue
            if isinstance(stmt, Reduce):
                known = held.get((stmt.src.buffer.name, stmt.dim))
                if known is not None and known == identity(stmt.op, stmt.dst.buffer.dtype).value:
                    self.found.add(id(stmt))
            _forget(stmt, held)
            if isinstance(stmt, For | Pipelined | While):
                self.walk(stmt.body, dict(held))
            elif isinstance(stmt, If):
                self.walk(stmt.then, dict(held))
                self.walk(stmt.orelse, dict(held))

    def _loop(self, stmt: Parallel, held: Held) -> None:
        layout = self.frames.of(stmt)
        loop = ParallelLoop(
            loop_vars=stmt.loop_vars, extents=stmt.extents, body=stmt.body, quote="", comments=(),
            layout=layout,
        )  # fmt: skip
        if layout is None or not only_fragments(loop):
            _forget(stmt, held)
            return
        for store in stmt.body:
            assert isinstance(store, Store)
            new: Held = {}
            for dim, part in enumerate(store.index):
                if (
                    isinstance(part, Var)
                    and (value := self._past(stmt, part, store.value, held)) is not None
                ):
                    new[(store.buffer.name, dim)] = value
            _forget(store, held)
            held.update(new)

    def _past(self, loop: Parallel, var: Var, value: Expr, held: Held) -> Number | None:
        """The value where `var` is past its extent and all others are inside."""
        ctx, facts = self.ctx, self.ctx.facts
        for other, extent in zip(loop.loop_vars, loop.extents, strict=True):
            past = other.name == var.name
            start, stop = (extent, b.add(extent, extent)) if past else (const(0), extent)
            ctx.facts = ctx.facts.with_range(other, start, stop)
        try:
            return self._value(value, var.name, held)
        finally:
            ctx.facts = facts

    def _value(self, value: Expr, var: str, held: Held) -> Number | None:
        match value:
            case Const():
                return value.value
            case Cast():
                return self._value(value.a, var, held)
            case Load():
                return self._loaded(value, var, held)
            case Binary():
                a, c = self._value(value.a, var, held), self._value(value.b, var, held)
                return None if a is None or c is None else _combined(value.op, a, c)
            case Select():
                a, c = self._value(value.a, var, held), self._value(value.b, var, held)
                return a if a == c else None
            case Call() if value.function == "abs":
                a = self._value(value.args[0], var, held)
                return None if a is None else abs(a)
        return None

    def _loaded(self, load: Load, var: str, held: Held) -> Number | None:
        dims = [dim for dim, part in enumerate(load.index) if b.mentions(part, var)]
        if len(dims) != 1:
            return None
        (dim,) = dims
        if load.buffer.scope == "fragment":
            plain = isinstance(load.index[dim], Var)
            return held.get((load.buffer.name, dim)) if plain else None
        if load.buffer.scope != "global":
            return None
        past = b.sub(load.index[dim], load.buffer.shape[dim])
        return 0 if self.ctx.facts.at_least(past, 0) else None


def _combined(op: str, a: Number, c: Number) -> Number | None:
    if op in ("+", "-", "*"):
        return {"+": a + c, "-": a - c, "*": a * c}[op]
    return {"max": max(a, c), "min": min(a, c)}.get(op)


def _forget(stmt: Stmt, held: Held) -> None:
    """What the statement writes is not known any more."""
    written = {buffer.name for inner in statements((stmt,)) for buffer in writes(inner)}
    for key in [key for key in held if key[0] in written]:
        del held[key]
