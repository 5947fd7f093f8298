"""Traces device code: walks it once, decides what the host knows, writes down what is left."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any, Protocol

import libcst as cst
from tile2c.transpile.diagnostics import InputError, Span
from tile2c.transpile.record import record
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.author_comments import AuthorComments
from tile2c.transpile.stage.buffers import Buffer
from tile2c.transpile.stage.definitions import Flow
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.host import Host
from tile2c.transpile.stage.linear import number
from tile2c.transpile.stage.origins import Origin
from tile2c.transpile.stage.residual import MOST_STATEMENTS
from tile2c.transpile.stage.spelling import OPERATORS
from tile2c.transpile.stage.state import is_variable
from tile2c.transpile.stage.trace_values import Context, Loop, RuntimeRegion
from tile2c.transpile.stage.values import (
    Expired,
    HostFunction,
    Poison,
    Poisoned,
    Value,
)


class Declarations(Protocol):
    """Takes the annotation statements of an eager function."""

    def declare(self, ev: Any, node: ast.AnnAssign) -> None: ...


@record(frozen=False)
class Tracer(AuthorComments):
    """Adds device statements; the language's own calls are in `language`."""

    hint: str | None = None  # the name that an assignment gives to an allocation
    launches: int = 0
    outputs: list[Buffer] = field(default_factory=list)  # of T.empty
    returned: list[Value] | None = None
    eager: Declarations | None = None  # where an eager function's parameters are declared

    # -- blocks ----------------------------------------------------------------------------------

    def execute_all(self, body: list[ast.stmt]) -> Flow:
        if not self.frame.device:
            return Host.execute_all(self, body)
        if not body:
            return None
        above = self.frame.source.comments_above(body[0].lineno)
        return self.splice(body, body[0].lineno - 1 - len(above))

    def trace_block(self, body: list[ast.stmt], after: int) -> Flow:
        """Traces statements; `after` is the line above the first one's comments."""
        flow: Flow = None
        body = self.with_kernel(body)
        for position, node in enumerate(body):
            comments = self.residual.comments
            kept = len(comments)
            comments += self._comments_before(node, after, first=position == 0)
            after = node.end_lineno or node.lineno
            if not isinstance(node, ast.For | ast.If | ast.With | ast.While | ast.FunctionDef):
                self._take_inner_comments(node)
            written = self.residual.count
            flow = self._trace_safely(node)
            self.residual.trailing = None
            if self.residual.count == written and self.residual.comments is comments:
                del comments[kept:]  # a comment goes with its statement
            if self.residual.count > MOST_STATEMENTS:
                raise self.fail("T2C113", "the kernel unrolls into too many statements", node)
            if flow is not None:
                break
        if body and flow is None:
            self.residual.footers[-1] += self._comments_after(body[-1], after)
        return flow

    def splice(self, body: list[ast.stmt], after: int) -> Flow:
        """Traces a block whose statements join those around it; so do the comments at its end."""
        footer = self.residual.footers[-1]
        kept = len(footer)
        flow = self.trace_block(body, after)
        self.residual.comments += footer[kept:]
        del footer[kept:]
        return flow

    def with_kernel(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """`bx, by = T.Kernel(...)` without `with`: the rest of the block becomes its body."""
        return body

    def _trace_safely(self, node: ast.stmt) -> Flow:
        outer, self.statement = self.statement, node
        depth = len(self.residual.blocks)
        try:
            return self.execute(node)
        except (InputError, Poisoned) as problem:
            if isinstance(problem, InputError):
                self.diagnostics.add(problem.diagnostic)
                if problem.diagnostic.code == "T2C113":
                    raise
            assert len(self.residual.blocks) == depth
            self._poison(node)
            return None
        finally:
            self.statement = outer

    def _poison(self, node: ast.stmt) -> None:
        """What a wrong statement would have bound is wrong too, silently."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                cell = self.frame.scope.cells.get(part.id)
                if cell is None or not is_variable(cell.value):
                    self.define(self.frame.scope, part.id, Poison())

    # -- statements ------------------------------------------------------------------------------

    def execute(self, node: ast.stmt) -> Flow:
        if not self.frame.device:
            return Host.execute(self, node)
        self.burn(node)
        method = getattr(self, "_trace_" + type(node).__name__, None)
        if method is None:
            return Host.execute(self, node)
        flow: Flow = method(node)
        return flow

    def _trace_Expr(self, node: ast.Expr) -> Flow:
        if isinstance(node.value, ast.Constant):
            return None
        value = self.evaluate(node.value)
        if isinstance(value, Expr) and value.kind == "call" and value.device:
            self.residual.expression(value, self.here)
        return None

    def _trace_Pass(self, node: ast.Pass) -> Flow:
        return None

    def _trace_Break(self, node: ast.Break) -> Flow:
        self.residual.keyword("break", self.here)
        return None

    def _trace_Continue(self, node: ast.Continue) -> Flow:
        self.residual.keyword("continue", self.here)
        return None

    def _trace_Return(self, node: ast.Return) -> Flow:
        if any(region.kind != "with" for region in self.regions[self.region_floor :]):
            raise self.fail(
                "T2C209",
                "`return` stands under a condition or loop of the running kernel",
                node,
                help="assign to a T.alloc_var and return it at the end",
            )
        return "return", self.evaluate(node.value) if node.value else None

    def _trace_Assert(self, node: ast.Assert) -> Flow:
        test = self.evaluate(node.test)
        if isinstance(test, Expr) and test.device:
            message = self.evaluate(node.msg) if node.msg else None
            said = message if isinstance(message, str) else None
            self.residual.check(test, said, self.here)
            return None
        return Host._run_Assert(self, node)

    def _trace_Assign(self, node: ast.Assign) -> Flow:
        target = node.targets[0]
        self.hint = target.id if isinstance(target, ast.Name) else None
        try:
            value = self.evaluate(node.value)
        finally:
            self.hint = None
        for target in node.targets:
            self.bind_target(target, value, node.value)
        return None

    def _trace_AnnAssign(self, node: ast.AnnAssign) -> Flow:
        if node.value is None:
            return self.declare(node)
        self.hint = node.target.id if isinstance(node.target, ast.Name) else None
        try:
            value = self.evaluate(node.value)
        finally:
            self.hint = None
        self.bind_target(node.target, value, node.value)
        return None

    def declare(self, node: ast.AnnAssign) -> Flow:
        """`X: T.Tensor[...]` declares a run-time parameter of an eager function."""
        if self.eager is not None and isinstance(node.target, ast.Name):
            self.eager.declare(self, node)
        return None

    def _trace_AugAssign(self, node: ast.AugAssign) -> Flow:
        op = OPERATORS[type(node.op)]
        if isinstance(node.target, ast.Subscript):
            owner = self.evaluate(node.target.value)
            if isinstance(owner, Buffer):
                access = self.access(owner, node.target)
                if not access.is_element:
                    raise self.fail(
                        "T2C245", f"`{op}=` needs one element, not a region", node.target
                    )
                right = self.evaluate(node.value)
                old = self.read(access, node.target)
                new = self.operate(op, old, right, node, None, node.value)
                self.store(access, self.expression(new, None), node)
                return None
        return Host._run_AugAssign(self, node)

    # -- control flow ----------------------------------------------------------------------------

    @contextmanager
    def region(self, kind: str, span: Span) -> Iterator[RuntimeRegion]:
        """Inside, names end with the body."""
        region = RuntimeRegion(kind, span)
        self.regions.append(region)
        try:
            yield region
        finally:
            self.regions.pop()
            for scope, cell, place in region.bound:
                if scope.cells.get(cell.name) is cell:
                    expired = Expired(cell.name, span, kind, _dtype_of(cell.value), place)
                    scope.cells[cell.name] = replace(cell, value=expired)

    def _trace_If(self, node: ast.If) -> Flow:
        test = self.evaluate(node.test)
        if is_variable(test):
            test = self.expression(test, node.test)
        if isinstance(test, Expr) and number(test) is None:
            if not test.device and not self.in_kernel:
                self.truth(test, node.test)  # a decision before the launch: not ready
            return self._trace_runtime_if(node, test)
        if self.truth(test, node.test):
            return self.splice(node.body, self.head_end(node, node.test, node.body))
        if node.orelse:
            return self.splice(node.orelse, self._else_line(node))
        return None

    def _trace_runtime_if(self, node: ast.If, test: Expr) -> Flow:
        lead = self.residual.take_comments()
        origin = self.origin(node, node.test)
        header = self.header_comment(node, node.body)
        after = self.head_end(node, node.test, node.body)
        body = self._branch(node.body, after, header, origin)
        orelse = None
        if node.orelse:
            orelse = self._else(node, origin)
        self.residual.branch(test, body, orelse, lead, origin)
        return None

    def _branch(
        self, body: list[ast.stmt], after: int, header: str | None, origin: Origin
    ) -> cst.IndentedBlock:
        with self.region("if", origin.span), self.residual.block() as block:
            self.trace_block(body, after)
            footer = self.residual.footers[-1]
        return self.residual.suite(block, header, origin, footer)

    def _else(self, node: ast.If, origin: Origin) -> cst.If | cst.Else | None:
        line = self._else_line(node)
        suite = self._branch(node.orelse, line, self._comment_at(line), origin)
        is_elif = self.frame.source.lines[line - 1].lstrip().startswith("elif")
        if is_elif and len(suite.body) == 1 and isinstance(suite.body[0], cst.If):
            return suite.body[0]
        if len(suite.body) == 1 and isinstance(suite.body[0], cst.SimpleStatementLine):
            if isinstance(suite.body[0].body[0], cst.Pass) and not suite.footer:
                return None
        return cst.Else(suite)

    def _comment_at(self, line: int) -> str | None:
        comment = self.frame.source.comments.get(line)
        return comment.text if comment is not None and not comment.own_line else None

    def _else_line(self, node: ast.If | ast.For) -> int:
        first = node.orelse[0].lineno
        lines = self.frame.source.lines
        for line in range(first, (node.body[-1].end_lineno or node.lineno) - 1, -1):
            if lines[line - 1].lstrip().startswith(("else", "elif")):
                return line
        return first - 1

    def _trace_While(self, node: ast.While) -> Flow:
        written = self.residual.count
        test = self.evaluate(node.test)
        if self.residual.count != written:
            raise self.fail("T2C243", "a macro cannot be called in this condition", node.test)
        if is_variable(test):
            test = self.expression(test, node.test)
        if not isinstance(test, Expr):
            if self.truth(test, node.test):
                raise self.fail(
                    "T2C315",
                    "this loop never ends: its condition is true when the kernel is built",
                    node.test,
                    help="make what it tests a T.alloc_var",
                )
            return None
        lead, origin = self.residual.take_comments(), self.origin(node, node.test)
        body = self._loop_body(node, origin, node.test)
        self.residual.while_loop(test, body, lead, origin)
        return None

    def _trace_For(self, node: ast.For) -> Flow:
        items = self._loop_of(node.iter)
        if isinstance(items, Loop):
            self.trace_loop(node, items)
            return None
        if isinstance(items, Expr) and items.kind == "call" and items.op == "get_thread_binding":
            self.bind_target(node.target, items, node.iter)  # `for tx in T.thread_binding(...)`
            return self.splice(node.body, self.head_end(node, node.iter, node.body))
        if isinstance(items, Expr):
            raise self.fail(
                "T2C215",
                f"{ex.text(items)} cannot be looped over",
                node.iter,
                help=f"for i in T.serial({ex.text(items)})",
            )
        for item in self.iterate(items, node.iter):
            self.bind_target(node.target, item, None)
            flow = self.splice(node.body, self.head_end(node, node.iter, node.body))
            if flow is not None:
                return flow
        return None

    def _loop_of(self, node: ast.expr) -> Value:
        """The value that a `for` iterates over; `range` is a loop of the kernel."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            function = self.evaluate(node.func)
            if isinstance(function, HostFunction) and function.name == "range":
                return self.call_language("serial", node)
        return self.evaluate(node)

    def trace_loop(self, node: ast.For, loop: Loop) -> None:
        """Writes a loop of the kernel. `T.grid` becomes one loop for each extent."""
        raise NotImplementedError

    def _loop_body(self, node: ast.While, origin: Origin, end: ast.expr) -> cst.IndentedBlock:
        with self.region("while", origin.span), self.residual.block() as block:
            self.trace_block(node.body, self.head_end(node, end, node.body))
            footer = self.residual.footers[-1]
        return self.residual.suite(block, self.header_comment(node, node.body), origin, footer)

    def _trace_With(self, node: ast.With) -> Flow:
        item = node.items[0]
        if len(node.items) > 1:  # `with a, b:` is `with a:` around `with b:`
            inner = ast.copy_location(ast.With(node.items[1:], node.body), node)
            node = ast.copy_location(ast.With([item], [inner]), node)
        value = self.evaluate(item.context_expr)
        if isinstance(value, Context):
            return self.trace_context(node, value)
        raise self.fail("T2C115", "this `with` is not part of the tile language", item.context_expr)

    def trace_context(self, node: ast.With, context: Context) -> Flow:
        raise NotImplementedError


def _dtype_of(value: Value) -> str | None:
    """The element type of a variable that could hold `value`; None where that is not known."""
    match value:
        case bool():
            return "bool"
        case int():
            return "int32"
        case float():
            return "float32"
        case _:
            return getattr(value, "dtype", None)
