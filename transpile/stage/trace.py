"""Traces device code: walks it once, decides what the host knows, writes down what is left."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import libcst as cst
from tile2c.transpile.diagnostics import InputError, Span
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Access, Buffer
from tile2c.transpile.stage.evaluate import _OPERATORS, is_variable
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.host import Flow, Host
from tile2c.transpile.stage.inlining import Inliner
from tile2c.transpile.stage.linear import number
from tile2c.transpile.stage.origins import Origin
from tile2c.transpile.stage.residual import MOST_STATEMENTS
from tile2c.transpile.stage.trace_values import Context, Loop, Reference, RuntimeRegion
from tile2c.transpile.stage.values import (
    Cell,
    Expired,
    HostFunction,
    Poison,
    Poisoned,
    Scope,
    Value,
)

RESERVED = frozenset(("T", "tilelang", "range", "float"))


class Declarations(Protocol):
    """Takes the annotation statements of an eager function."""

    def declare(self, ev: Any, node: ast.AnnAssign) -> None: ...


@dataclass(slots=True)
class Tracer(Inliner):
    """Adds device statements; the language's own calls are in `language`."""

    owners: dict[str, tuple[Scope | None, str]] = field(default_factory=dict)
    escaped: set[str] = field(default_factory=set)  # temporaries that containers hold
    hint: str | None = None  # the name that an assignment gives to an allocation
    in_kernel: bool = False
    launches: int = 0
    outputs: list[Buffer] = field(default_factory=list)  # of T.empty
    returned: list[Value] | None = None
    eager: Declarations | None = None  # where an eager function's parameters are declared

    # -- where statements come from --------------------------------------------------------------

    def origin(self, node: ast.AST, end: ast.AST | None = None) -> Origin:
        """The origin of a statement; a compound one ends with `end`, the last part of its head."""
        source = self.frame.source
        span = source.span(node)
        if end is not None:
            last = source.span(end)
            line = source.lines[last.end_line - 1]
            closing = last.end_col + (1 if line[last.end_col : last.end_col + 1] == ")" else 0)
            span = Span(span.file, span.line, span.col, last.end_line, closing)
            if source.cut(span).count("(") < source.cut(span).count(")"):
                span = Span(span.file, span.line, span.col, last.end_line, last.end_col)
        return Origin(span, source.cut(span), self.frame.calls)

    @property
    def here(self) -> Origin:
        """The origin of the statement that is traced now."""
        assert self.statement is not None
        return self.origin(self.statement)

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

    def _comments_before(self, node: ast.stmt, after: int, first: bool) -> Iterator[str]:
        column = node.col_offset
        for line in range(after + 1, node.lineno):
            comment = self.frame.source.comments.get(line)
            if comment is not None and comment.own_line and (first or comment.col <= column):
                yield comment.text

    def _comments_after(self, node: ast.stmt, line: int) -> Iterator[str]:
        source = self.frame.source
        body = getattr(node, "body", None)  # a comment of its depth ends that block
        inner = body[0].col_offset if isinstance(body, list) else 1000
        while line < len(source.lines):
            line += 1
            comment = source.comments.get(line)
            if comment is not None and comment.own_line and comment.col >= node.col_offset > 0:
                if comment.col < inner:
                    yield comment.text
            elif source.lines[line - 1].strip():
                return

    def _take_inner_comments(self, node: ast.stmt) -> None:
        """Comments inside a simple statement go above it, the one behind it stays behind."""
        last = node.end_lineno or node.lineno
        for line in range(node.lineno, last + 1):
            comment = self.frame.source.comments.get(line)
            if comment is None:
                continue
            if line == last and not comment.own_line:
                self.residual.trailing = comment.text
            else:
                self.residual.comments.append(comment.text)

    def header_comment(self, node: ast.stmt, body: list[ast.stmt]) -> str | None:
        """The comment behind the head of a compound statement."""
        for line in range(node.lineno, max(body[0].lineno, node.lineno + 1)):
            comment = self.frame.source.comments.get(line)
            if comment is not None and not comment.own_line:
                return comment.text
        return None

    def head_end(self, node: ast.stmt, end: ast.AST | None, body: list[ast.stmt]) -> int:
        """The last line of a compound statement's head."""
        return (getattr(end, "end_lineno", None) or node.lineno) if end else body[0].lineno - 1

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
        op = _OPERATORS[type(node.op)]
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

    # -- binding names ---------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Value, node: ast.expr | None) -> None:
        if self.frame.device:
            self.bind_target(target, value, node)
        else:
            Host.assign(self, target, value, node)

    def bind_target(self, target: ast.expr, value: Value, node: ast.expr | None) -> None:
        """`target = value` in device code."""
        match target:
            case ast.Name():
                self.bind_name(target, value, node)
            case ast.Tuple() | ast.List():
                self._bind_tuple(target, value, node)
            case ast.Subscript():
                owner = self.evaluate(target.value)
                if isinstance(owner, Buffer):
                    self._store_into(self.access(owner, target), value, node, target)
                else:
                    Host.assign(self, target, value, node)
            case ast.Attribute():
                Host.assign(self, target, value, node)
            case _:
                raise self.fail("T2C245", "this cannot be assigned to", target)

    def bind_name(self, target: ast.Name, value: Value, node: ast.expr | None) -> None:
        scope = self.frame.scope
        cell = scope.find(target.id)
        if cell is not None and isinstance(value, Expr | int | float | Buffer):
            numeric = not isinstance(value, Buffer) or is_variable(value)
            fresh = isinstance(value, Buffer) and value.span == self.span(node)
            if isinstance(cell.value, Reference) and numeric:
                self.store(cell.value.access, self.expression(value, node), target)
                return
            if is_variable(cell.value) and numeric and not fresh:
                variable = cell.value.expr(self.span(target))
                self.residual.assign(variable, self.expression(value, node), self.here)
                return
        if is_variable(value) and not (isinstance(node, ast.Call)):
            value = value.expr(self.span(node))
        if isinstance(value, Expr):
            plain = value.kind in ("size", "constant", "literal", "language")
            if plain or not (value.device or self.in_kernel):
                self.define(scope, target.id, value)  # nothing to compute: another name for it
            else:
                self._bind_temporary(target, value)
            return
        self._warn_of_rebinding(target, cell, value)
        self._mark_escaped(value)
        spelling = None
        if isinstance(value, int | float) and target.id not in self.frame.once and node is not None:
            spelling = self._spell_by_name(node, value)
        cell = self.define(
            scope,
            target.id,
            value,
            nameable=target.id in self.frame.once and not self.frame.calls,
            spelling=spelling,
        )
        if isinstance(value, Buffer) and self.regions:
            self.regions[-1].bound.append((scope, cell))

    def _bind_temporary(self, target: ast.Name, value: Expr) -> None:
        """A `const` of the kernel: its value now, whatever is stored later."""
        name = self.claim(target.id, "temporary")
        left = ex.name(name, self.span(target), value.dtype)
        self.residual.assign(left, value, self.here)
        self.bind_device(target.id, left)

    def bind_device(self, name: str, value: Expr) -> None:
        """Binds a name to what the kernel computed; it ends with the region around."""
        cell = self.define(self.frame.scope, name, value)
        if self.regions:
            self.regions[-1].bound.append((self.frame.scope, cell))

    def claim(self, name: str, kind: str) -> str:
        """A name in the residual program for `name` of the present scope."""
        scope = self.frame.scope
        for candidate in self._candidates(name):
            owner = self.owners.get(candidate)
            if candidate in RESERVED or candidate in self.constants or candidate in self.size_names:
                continue
            rebinds = (
                owner is not None
                and owner[0] is scope
                and "buffer" not in (kind, owner[1])
                and candidate not in self.escaped
            )
            unowned = owner is None and (candidate not in self.taken or candidate == name)
            if owner is None and self.frame.calls and candidate in self.taken:
                unowned = False
            if unowned or rebinds:
                self.owners[candidate] = (scope, kind)
                self.taken.add(candidate)
                return candidate
        raise self.fail("T2C113", f"too many things are called {name}", self.statement)

    def _candidates(self, name: str) -> Iterator[str]:
        yield name
        if self.frame.calls and self.frame.function:
            name = f"{self.frame.function.strip('_')}_{name}".replace("<lambda>", "f")
            yield name
        for number_ in range(2, 1000):
            yield f"{name}_{number_}"

    @property
    def size_names(self) -> frozenset[str]:
        return frozenset()

    def _mark_escaped(self, value: Value) -> None:
        if isinstance(value, list | tuple):
            for item in value:
                if isinstance(item, Expr):
                    self.escaped |= ex.names_in(item)
                else:
                    self._mark_escaped(item)

    def _warn_of_rebinding(self, target: ast.Name, cell: Cell | None, value: Value) -> None:
        numbers = isinstance(value, int | float) and not isinstance(value, bool)
        if cell is None or not numbers or not isinstance(cell.value, int | float):
            return
        loop = next((region for region in self.regions if region.kind in ("for", "while")), None)
        if loop is not None and cell.name in self.frame.scope.cells and cell.value != value:
            self.diagnostics.warning(
                "T2C206",
                f"{target.id} is a Python number: it becomes {value} once, when the kernel is "
                "built, not in every round of the loop",
                self.span(target),
                help=f"{target.id} = T.alloc_var(T.int32, {cell.value}) before the loop",
            )

    def _bind_tuple(
        self, target: ast.Tuple | ast.List, value: Value, node: ast.expr | None
    ) -> None:
        if isinstance(value, Poison):
            Host._unpack(self, target, value, node)
            return
        items = list(self.iterate(value, node or target))
        if len(items) == len(target.elts) and any(
            isinstance(item, Expr) or is_variable(item) for item in items
        ):
            names = {element.id for element in target.elts if isinstance(element, ast.Name)}
            touched = [
                isinstance(item, Expr | Buffer) and self._reads_any(item, names) for item in items
            ]
            if sum(touched) > 0 and len(names) > 1 and any(touched[1:]):
                value = tuple(self._snapshot(t, i) for t, i in zip(target.elts, items, strict=True))
                node = None
        Host._unpack(self, target, value, node)

    def _reads_any(self, item: Expr | Buffer, names: set[str]) -> bool:
        inside = ex.names_in(item) if isinstance(item, Expr) else {item.name}
        bound = {self.frame.scope.find(name) for name in names}
        residual: set[str] = set()
        for cell in bound:
            if cell is not None and isinstance(cell.value, Expr):
                residual |= ex.names_in(cell.value)
            elif cell is not None and isinstance(cell.value, Buffer):
                residual.add(cell.value.name)
        return bool(inside & residual)

    def _snapshot(self, target: ast.expr, item: Value) -> Value:
        """The value before any of the targets changes, under a name of its own."""
        if not isinstance(item, Expr) and not is_variable(item):
            return item
        base = target.id if isinstance(target, ast.Name) else "value"
        name = self.claim(f"new_{base}", "temporary")
        left = ex.name(name, self.span(target))
        self.residual.assign(left, self.expression(item, None), self.here)
        return left

    # -- stores ----------------------------------------------------------------------------------

    def _store_into(
        self, access: Access, value: Value, node: ast.expr | None, target: ast.expr
    ) -> None:
        if access.is_element:
            self.store(access, self.expression(value, node), target)
        else:
            self.store_region(access, value, node, target)

    def store(self, access: Access, value: Expr, node: ast.AST) -> None:
        """`buffer[i, j] = value`."""
        args = (access.buffer.expr(access.span), *(piece.lo for piece in access.pieces))
        target = ex.compound("index", "", args, access.span)
        self.residual.assign(target, value, self.here)

    def store_region(
        self, access: Access, value: Value, node: ast.expr | None, target: ast.expr
    ) -> None:
        """`buffer[a:b] = value`: a fill or a copy."""
        raise NotImplementedError

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
            for scope, cell in region.bound:
                if scope.cells.get(cell.name) is cell:
                    dtype = getattr(cell.value, "dtype", None)
                    expired = Expired(cell.name, span, kind, dtype)
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
        with self.residual.block() as block:
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
