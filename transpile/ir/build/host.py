"""Statements of a function outside its launches: sizes computed at launch time, conditions."""

from __future__ import annotations

import libcst as cst
from tile2c.transpile.ir.build import conversions
from tile2c.transpile.ir.build.arguments import language_name
from tile2c.transpile.ir.build.context import Builder, Poison, Stop
from tile2c.transpile.ir.build.expressions import expression
from tile2c.transpile.ir.build.hints import HINTS, assume
from tile2c.transpile.ir.build.launch import launches
from tile2c.transpile.ir.dtypes import BOOL
from tile2c.transpile.ir.expr import Expr, Logical, Unary
from tile2c.transpile.ir.forms import Launch


def host_statement(b: Builder, node: cst.BaseStatement, when: Expr | None) -> list[Launch]:
    """`g = T.ceildiv(M, 64)` binds a name; `if n > 0:` makes launches conditional."""
    with b.within(node):
        if isinstance(node, cst.If):
            return _conditional(b, node, when)
        if not isinstance(node, cst.SimpleStatementLine):
            b.fail(
                "T2C404",
                "this statement stands outside T.Kernel: only sizes, `if` and launches may",
                node,
                help="move it into a `with T.Kernel(...)`",
            )
        for part in node.body:
            _small(b, part)
        return []


def _small(b: Builder, node: cst.BaseSmallStatement) -> None:
    match node:
        case cst.Pass() | cst.Expr(value=cst.SimpleString()) | cst.Return():
            return
        case cst.Expr(value=cst.Call() as call):
            name = language_name(call.func)
            if name == "assume":
                return assume(b, call)
            if name in HINTS:
                return None
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            try:
                b.scopes.bind(name, expression(b, node.value))
            except Stop:
                b.scopes.bind(name, Poison())
                raise
            return None
    b.fail("T2C404", "this statement stands outside T.Kernel", node)


def _conditional(b: Builder, node: cst.If, when: Expr | None) -> list[Launch]:
    test = conversions.condition(b, expression(b, node.test), node.test)
    with b.scopes.region("the `if`"):
        found = launches(b, _statements(node.body), _both(when, test))
    if node.orelse is not None:
        other = _both(when, Unary(dtype=BOOL, op="not", a=test, span=test.span))
        with b.scopes.region("the `else`"):
            if isinstance(node.orelse, cst.If):
                found += host_statement(b, node.orelse, other)
            else:
                found += launches(b, _statements(node.orelse.body), other)
    return found


def _both(when: Expr | None, test: Expr) -> Expr:
    if when is None:
        return test
    return Logical(dtype=BOOL, op="and", a=when, b=test, span=test.span)


def _statements(body: cst.BaseSuite) -> list[cst.BaseStatement]:
    return [node for node in body.body if isinstance(node, cst.BaseStatement)]
