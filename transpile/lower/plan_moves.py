"""What each statement of a plan moves between memories, and how much in one access.

reads   a plan of threads          writes  rows for `--emit plan`
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, fields, is_dataclass
from math import prod

from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Const, Expr, Var
from tile2c.transpile.lower.plan import Address, CCall, CStmt, Element, Local, Plan
from tile2c.transpile.record import record

_WORDS = {"load": "reads", "store": "writes", "copy": "copies to", "tma": "bulk copy of"}


@record(frozen=False)
class _Walk:
    """Arrays by name while the statements are walked in order; rows by quoted statement."""

    arrays: dict[str, tuple[DType, tuple[int, ...]]] = field(default_factory=dict)
    rows: dict[str, dict[str, None]] = field(default_factory=dict)

    def stmt(self, stmt: CStmt, quote: str) -> None:
        quote = stmt.comments[-1] if stmt.comments else quote
        if isinstance(stmt, Local):
            for name in stmt.names:
                known = all(isinstance(dim, Const) for dim in name.dims)
                dims = tuple(int(d.value) for d in name.dims if isinstance(d, Const))
                if name.dims and known:
                    self.arrays[name.name] = (stmt.dtype, dims)
                else:
                    self.arrays.setdefault(name.name, (stmt.dtype, ()))
        for part in _parts(stmt):
            if isinstance(part, CStmt):
                self.stmt(part, quote)
            else:
                for call in _calls(part):
                    text = self.described(call)
                    if text is not None and quote:
                        self.rows.setdefault(quote, {})[text] = None

    def described(self, call: CCall) -> str | None:
        """`reads A: 8 x float16, 16 bytes in one access`, None if the call moves nothing."""
        kind, _, rest = call.function.partition("_")
        memory = [
            arg.element.array
            for arg in call.args
            if isinstance(arg, Address) and isinstance(arg.element, Element)
        ]
        if kind not in _WORDS or not rest or not memory:
            return None
        text = f"{_WORDS[kind]} {memory[0]}"
        if "matrices" in rest:
            return f"{text}: matrices of 8 x 8, {call.function}"
        count = self._count(call)
        if count is None or memory[0] not in self.arrays:
            return f"{text}: {call.function}"
        dtype = self.arrays[memory[0]][0]
        how = f"{count} x {dtype}, {count * dtype.bits // 8} bytes in one access"
        open_case = any(isinstance(part, Var) for part in call.template)
        return f"{text}: {how}{', where rows are aligned' if open_case else ''}"

    def _count(self, call: CCall) -> int | None:
        """Elements of one access: the first template argument, else the register array's."""
        if call.template and isinstance(call.template[0], Const):
            return int(call.template[0].value)
        for arg in call.args:
            name = arg.array if isinstance(arg, Element) else getattr(arg, "name", None)
            if name in self.arrays and self.arrays[name][1]:
                skipped = len(arg.subscripts) if isinstance(arg, Element) else 0
                return prod(self.arrays[name][1][skipped:])
        return None


def moves(plan: Plan) -> list[str]:
    """Lines: each statement that moves data, and below it its accesses."""
    walk = _Walk()
    given = [body.params for body in plan.bodies] + [entry.params for entry in plan.entries]
    walk.arrays.update((param.name, (param.dtype, ())) for params in given for param in params)
    for stmts in [body.body for body in plan.bodies] + [entry.body for entry in plan.entries]:
        for stmt in stmts:
            walk.stmt(stmt, "")
    return [
        line
        for quote, rows in walk.rows.items()
        for line in (f"`{quote}`", *(f"    {row}" for row in rows))
    ]


def _parts(stmt: CStmt) -> Iterator[CStmt | Expr]:
    """Statements and expressions directly inside a statement, in order."""
    for item in fields(stmt):
        value = getattr(stmt, item.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, CStmt | Expr):
                yield part


def _calls(expr: object) -> Iterator[CCall]:
    if isinstance(expr, CCall):
        yield expr
    if isinstance(expr, tuple):
        for part in expr:
            yield from _calls(part)
    elif is_dataclass(expr) and isinstance(expr, Expr):
        for item in fields(expr):
            yield from _calls(getattr(expr, item.name))
