"""What each tile is to the products of a kernel: an operand, or the sums.

reads   tile IR        writes  names of buffers
"""

from __future__ import annotations

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.expr import Buffer, Const, Expr
from tile2c.transpile.ir.forms import Region, Stmt
from tile2c.transpile.record import record


@record
class Roles:
    """Buffers by name: `sums` are written by products, `left` and `right` read by them."""

    sums: dict[str, Buffer]
    left: dict[str, Buffer]
    right: dict[str, Buffer]

    @property
    def operands(self) -> dict[str, Buffer]:
        return {**self.left, **self.right}


def find_roles(body: tuple[Stmt, ...]) -> Roles:
    """The roles of all buffers of the gemms in a body."""
    found = Roles({}, {}, {})
    for stmt in walk.statements(body):
        if isinstance(stmt, forms.Gemm):
            found.sums[stmt.c.buffer.name] = stmt.c.buffer
            found.left[stmt.a.buffer.name] = stmt.a.buffer
            found.right[stmt.b.buffer.name] = stmt.b.buffer
    return found


def has_products(launch: forms.Launch) -> bool:
    """Whether a launch multiplies at all."""
    return any(isinstance(stmt, forms.Gemm) for stmt in walk.statements(launch.body))


def touches(stmt: Stmt, name: str) -> bool:
    """Whether a statement, or one inside it, reads or writes a buffer."""
    return any(
        name in {used.name for used in (*walk.reads(part), *walk.writes(part))}
        for part in walk.statements((stmt,))
    )


def is_load(stmt: forms.Copy) -> bool:
    """Whether a copy brings elements from a tensor as they are."""
    return stmt.src.buffer.scope == "global" and stmt.src.buffer.dtype == stmt.dst.buffer.dtype


def whole(region: Region) -> bool:
    """Whether a region is all of its buffer."""
    return all(
        part.extent == extent and is_number(part.start, 0)
        for part, extent in zip(region.ranges, region.buffer.shape, strict=True)
    )


def is_number(expr: Expr, value: float) -> bool:
    """Whether an expression is this number, converted or not."""
    while not isinstance(expr, Const):
        inner = walk.children(expr)
        if len(inner) != 1:
            return False
        (expr,) = inner
    return not isinstance(expr.value, bool) and expr.value == value
