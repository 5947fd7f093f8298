"""What holds in a whole launch: ranges of its indices, what the author promised of sizes."""

from __future__ import annotations

from tile2c.transpile.ir.expr import Binary, Compare, Const, Expr, Var, const
from tile2c.transpile.ir.forms import Function, Launch, Let
from tile2c.transpile.ir.walk import statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.facts import Facts


def starting_facts(function: Function, launch: Launch) -> Facts:
    """Ranges of block indices; what the author promised of sizes."""
    facts = Facts()
    for condition in function.assumptions:
        facts = _assume(facts, condition)
    for var, extent in zip(launch.blocks, launch.grid, strict=True):
        facts = facts.with_range(var, const(0), extent)
    for var, count in zip(launch.thread_vars, launch.threads, strict=False):
        facts = facts.with_range(var, const(0), const(count))
    for param in function.params:  # tensors have no negative extents
        for extent in param.tensor.shape if param.tensor is not None else ():
            if not isinstance(extent, Const | Var):
                facts = facts.with_condition(b.compare(">=", extent, const(0)))
    for stmt in statements(launch.body):
        if isinstance(stmt, Let):
            facts = facts.with_meaning(stmt.var, stmt.value)
    return facts


def _assume(facts: Facts, condition: Expr) -> Facts:
    if isinstance(condition, Compare) and condition.op == "==" and b.literal(condition.b, 0):
        inner = condition.a
        if isinstance(inner, Binary) and inner.op in ("%", "truncmod") and isinstance(inner.a, Var):
            by = b.known(inner.b)
            if by:
                return facts.with_divisor(inner.a, by)
    return facts.with_condition(condition)
