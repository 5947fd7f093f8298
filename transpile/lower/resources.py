"""What a plan takes of a block's share: shared memory, and registers for each thread's arrays.

reads   a plan          writes  `output.generated.Resources`
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tile2c.transpile.ir.expr import Const
from tile2c.transpile.lower.plan import Branch, CStmt, Local, Plan
from tile2c.transpile.output.generated import Resources

if TYPE_CHECKING:
    from tile2c.transpile.lower.cores.plan import CoresPlan

REGISTER_BITS = 32


def resources(plan: Plan | CoresPlan) -> Resources:
    """The largest need of any of its entry points."""
    if not isinstance(plan, Plan):
        return Resources(local_bytes=plan.local_bytes, registers=None)
    bodies = [body.body for body in plan.bodies] + [entry.body for entry in plan.entries]
    bits = max((array_bits(body) for body in bodies), default=0)
    alone = Counter[int]()  # bytes of a launch's arrays
    for array in plan.placed:
        if array.offset is None:
            alone[array.launch] += array.bytes
    # Members of one struct may lie in the same bytes.
    ends = [array.offset + array.bytes for array in plan.placed if array.offset is not None]
    together = max(ends, default=0)
    dynamic = max((launch.shared_bytes for launch in plan.launches), default=0)
    return Resources(
        local_bytes=max((together, dynamic, *alone.values())),
        registers=-(-bits // REGISTER_BITS),
    )


def array_bits(body: tuple[CStmt, ...]) -> int:
    """Bits of the arrays of one thread that are alive together at most."""
    own = sum(_bits(stmt) for stmt in body if isinstance(stmt, Local) and not stmt.shared)
    return own + max((array_bits(inner) for stmt in body for inner in _inner(stmt)), default=0)


def _inner(stmt: CStmt) -> list[tuple[CStmt, ...]]:
    if isinstance(stmt, Branch):
        return [stmt.then, stmt.orelse]
    body = getattr(stmt, "body", None)
    return [body] if isinstance(body, tuple) else []


def _bits(local: Local) -> int:
    total = 0
    for name in local.names:
        if name.dims and all(isinstance(dim, Const) for dim in name.dims):
            count = 1
            for dim in name.dims:
                assert isinstance(dim, Const)
                count *= int(dim.value)
            total += count * local.dtype.bits
    return total
