"""Checks that a plan's C program is closed: every name is declared before it is used, once a scope.

Run by the tests after lowering; what it finds is a bug in a pass, never the user's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass

from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Const, Expr, Load, Var
from tile2c.transpile.lower.plan import (
    Arc,
    Body,
    CStmt,
    Element,
    Entry,
    Lambda,
    Local,
    Loop,
    Plan,
    Scope,
    Section,
    Sync,
)


class PlanError(AssertionError):
    """The plan breaks its own rules; the message names the place."""


_BUILTIN = {
    f"{what}.{dim}" for what in ("threadIdx", "blockIdx", "blockDim", "gridDim") for dim in "xyz"
}


def verify(plan: Plan) -> None:
    """Raises PlanError for an undeclared or twice declared name, or a load that was never lowered."""
    helpers = " ".join(str(field) for helper in plan.helpers for field in helper.fields)
    known = {c.name for c in plan.constants if c.name} | set(helpers.replace("(", " ").split())
    for body in plan.bodies:
        parts = {part.split()[-1] for part in body.template}
        _Checker(plan.name, [known | parts | _params(body)]).block(body.body)
    for entry in plan.entries:
        _Checker(entry.name, [known | _params(entry)]).block(entry.body)
    names = [entry.name for entry in plan.entries]
    for launch in plan.launches:
        if launch.entry not in names:
            raise PlanError(f"{plan.name}: a launch runs {launch.entry}, which is no entry")


def _params(place: Body | Entry) -> set[str]:
    return {param.name for param in place.params}


class _Checker:
    def __init__(self, place: str, scopes: list[set[str]]) -> None:
        self.place, self.scopes = place, scopes

    def block(self, body: Iterable[CStmt], names: Iterable[str] = ()) -> None:
        """Statements of a new scope that starts with `names`."""
        self.scopes.append(set(names))
        for stmt in body:
            self.statement(stmt)
        self.scopes.pop()

    def statement(self, stmt: CStmt) -> None:
        if isinstance(stmt, Section):
            for part in stmt.body:  # shares the scope around it
                self.statement(part)
        elif isinstance(stmt, Local):
            for name in stmt.names:
                self.expressions((name.value, name.dims))
                self.declare(name.name)
        elif isinstance(stmt, Loop):
            self.expressions((stmt.start,))
            self.scopes.append({stmt.var})
            self.expressions((stmt.stop, stmt.step))
            self.block(stmt.body)
            self.scopes.pop()
        elif isinstance(stmt, Lambda):
            self.declare(stmt.name)
            self.block(stmt.body, (part.split()[-1].strip("&") for part in stmt.params))
        elif isinstance(stmt, Scope):
            self.block(stmt.body)
        elif isinstance(stmt, Sync):
            if stmt.kind == "barrier" and not stmt.remark:
                raise PlanError(f"{self.place}: a barrier without a reason")
        else:
            self.rest(stmt)

    def rest(self, stmt: CStmt) -> None:
        """Branches, assignments, calls: expressions here, inner statements in scopes of their own."""
        for item in fields(stmt):
            value = getattr(stmt, item.name)
            if isinstance(value, tuple) and value and all(isinstance(x, CStmt) for x in value):
                self.block(value)
            else:
                self.expressions((value,))

    def declare(self, name: str) -> None:
        for part in name.strip("[]").split(","):  # structured bindings declare several
            part = part.strip()
            if part in self.scopes[-1]:
                raise PlanError(f"{self.place}: {part} is declared twice in one scope")
            self.scopes[-1].add(part)

    def expressions(self, values: Iterable[object]) -> None:
        for value in values:
            if isinstance(value, tuple):
                self.expressions(value)
            elif isinstance(value, Expr):
                self.expression(value)

    def expression(self, expr: Expr) -> None:
        if isinstance(expr, Load):
            raise PlanError(f"{self.place}: a load of {expr.buffer.name} was never lowered")
        if isinstance(expr, Var):
            self.use(expr.name)
        elif isinstance(expr, Element):
            self.use(expr.array)
        elif isinstance(expr, Const) and expr.name is not None:
            self.use(expr.name)
        for item in fields(expr):
            value = getattr(expr, item.name)
            if is_dataclass(value) and not isinstance(value, DType | Arc):
                self.expressions((value,))
            elif isinstance(value, tuple):
                self.expressions(value)

    def use(self, name: str) -> None:
        if name in _BUILTIN or name in ("true", "false") or not name.isidentifier():
            return  # a literal or a piece of C that a target's own lowering wrote
        if not any(name in scope for scope in self.scopes):
            raise PlanError(f"{self.place}: {name} is used but not declared")
