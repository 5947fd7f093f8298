"""Sums that every thread of the block adds to: the author may have meant the block to, once."""

from __future__ import annotations

from math import prod

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir.expr import Call, Expr, Load, Var
from tile2c.transpile.ir.forms import (
    Atomic,
    For,
    Function,
    If,
    Launch,
    Let,
    Parallel,
    Pipelined,
    Stmt,
    While,
)
from tile2c.transpile.ir.walk import bodies, parts

_PRIVATE = ("local", "variable")
# how the names of functions begin whose values are those of a warp or a lane
_OF_A_WARP = ("warp", "shuffle", "lane", "elect")


def warn_of_repeated_atomics(function: Function, diagnostics: Diagnostics) -> None:
    """A warning for each `atomic_add` of a block's statement that is the same in all its threads."""
    for launch in function.launches:
        if prod(launch.threads) > 1:
            _warn(launch, launch.body, set(), diagnostics)


def _warn(
    launch: Launch, body: tuple[Stmt, ...], differing: set[str], diagnostics: Diagnostics
) -> None:
    """`differing`: names of values that threads may have each another of."""
    for stmt in body:
        match stmt:
            case Let() if _differs(stmt.value, differing):
                differing.add(stmt.var.name)
            case For() | Pipelined() if _differs(stmt.start, differing):
                differing.add(stmt.var.name)
            case Atomic():
                _judge(launch, stmt, differing, diagnostics)
            case Parallel():
                continue  # each of its iterations is done by one thread
            case If() | While() if _differs(stmt.condition, differing):
                continue
            case _:
                pass
        for inner in bodies(stmt):
            _warn(launch, inner, differing, diagnostics)


def _judge(launch: Launch, stmt: Atomic, differing: set[str], diagnostics: Diagnostics) -> None:
    if stmt.result is not None:
        differing.add(stmt.result.name)
        return
    if stmt.op != "add" or any(_differs(x, differing) for x in (*stmt.index, stmt.value)):
        return
    count = prod(launch.threads)
    diagnostics.warning(
        "T2C414",
        f"each of the block's {count} threads performs this statement, so {stmt.buffer.name} gets "
        f"the value {count} times",
        stmt.span,
        help="to add it once, write it inside `for i in T.Parallel(1):`, or under a condition on the "
        "thread index",
    )


def _differs(expr: Expr, differing: set[str]) -> bool:
    """Whether threads may have different values of it: private memory may hold anything."""
    for part in parts(expr):
        match part:
            case Var() if part.kind == "thread" or part.name in differing:
                return True
            case Load() if part.buffer.scope in _PRIVATE:
                return True
            case Call() if part.function.startswith(_OF_A_WARP):
                return True
            case _:
                pass
    return False
