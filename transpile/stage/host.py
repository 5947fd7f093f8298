"""Executes what runs when a kernel is built: modules, factories, helpers, `main()`."""

from __future__ import annotations

import ast

from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.record import record
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Buffer
from tile2c.transpile.stage.definitions import Definitions, Flow
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.spelling import OPERATORS
from tile2c.transpile.stage.values import (
    Foreign,
    HostTensor,
    Instance,
    LanguageName,
    NotReady,
    Poison,
    Poisoned,
    Unknown,
    Value,
)

_BREAK: Flow = ("break", None)
_CONTINUE: Flow = ("continue", None)


@record(frozen=False)
class Host(Definitions):
    """Adds statements to the evaluator."""

    def run_body(self, body: list[ast.stmt]) -> Value:
        """A function's body; its return value."""
        flow = self.execute_all(body)
        return flow[1] if flow is not None and flow[0] == "return" else None

    def execute_all(self, body: list[ast.stmt]) -> Flow:
        perhaps: Flow = None  # a return in a branch that a survey is not sure to take
        for statement in body:
            try:
                flow = self.execute(statement)
            except (InputError, Poisoned, NotReady) as problem:
                if self.exact:
                    raise
                if self.fuel < 0:
                    if isinstance(problem, InputError) and self.stopped is None:
                        self.stopped = problem.diagnostic
                    return perhaps
                self._forget(statement)
                continue
            if flow is not None and flow[0] == "perhaps":
                perhaps = perhaps or ("return", flow[1])
            elif flow is not None:
                return flow
        return perhaps

    def _forget(self, statement: ast.stmt) -> None:
        """After a failure in a survey: what the statement would have bound is Unknown."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.define(self.frame.scope, node.id, Unknown("its statement fails"))

    def execute(self, node: ast.stmt) -> Flow:
        self.burn(node)
        method = getattr(self, "_run_" + type(node).__name__, None)
        if method is None:
            if self.exact:
                raise self.fail("T2C115", f"`{_keyword(node)}` is not supported here", node)
            return None
        flow: Flow = method(node)
        return flow

    # -- simple statements -----------------------------------------------------------------------

    def _run_Expr(self, node: ast.Expr) -> Flow:
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value)
        return None

    def _run_Pass(self, node: ast.Pass) -> Flow:
        return None

    def _run_Break(self, node: ast.Break) -> Flow:
        return _BREAK

    def _run_Continue(self, node: ast.Continue) -> Flow:
        return _CONTINUE

    def _run_Return(self, node: ast.Return) -> Flow:
        return "return", self.evaluate(node.value) if node.value else None

    def _run_Assign(self, node: ast.Assign) -> Flow:
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, value, node.value)
            self._note_comment(target, node)
        return None

    def _note_comment(self, target: ast.expr, node: ast.stmt) -> None:
        """Keeps what the author wrote behind a constant."""
        comment = self.frame.source.comments.get(node.end_lineno or node.lineno)
        if isinstance(target, ast.Name) and comment is not None and not comment.own_line:
            cell = self.frame.scope.cells.get(target.id)
            if cell is not None:
                cell.comment = comment.text

    def _run_AnnAssign(self, node: ast.AnnAssign) -> Flow:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value), node.value)
        return None

    def _run_AugAssign(self, node: ast.AugAssign) -> Flow:
        load: ast.expr = (
            ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            if isinstance(node.target, ast.Name)
            else node.target
        )
        left = self.evaluate(load)
        right = self.evaluate(node.value)
        op = OPERATORS[type(node.op)]
        if isinstance(left, list) and op == "+":
            right = list(self.iterate(right, node.value))
        self.assign(node.target, self.operate(op, left, right, node, load, node.value), None)
        return None

    def assign(self, target: ast.expr, value: Value, node: ast.expr | None) -> None:
        """Binds `value` at build time; a store into a buffer is for device code."""
        match target:
            case ast.Name():
                spelling = None
                if self.tracing and node is not None and isinstance(value, int | float):
                    spelling = self._spell_by_name(node, value)
                self.define(
                    self.frame.scope, target.id, value, nameable=not self.tracing, spelling=spelling
                )
            case ast.Tuple() | ast.List():
                self._unpack(target, value, node)
            case ast.Starred():
                self.assign(target.value, value, node)
            case ast.Attribute():
                owner = self.evaluate(target.value)
                if isinstance(owner, Instance):
                    owner.attributes[target.attr] = value
            case ast.Subscript():
                self._assign_item(target, value)
            case _:
                raise self.fail("T2C245", "this cannot be assigned to", target)

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, node: ast.expr | None) -> None:
        count = len(target.elts)
        if isinstance(value, Unknown | Foreign) and not self.exact:
            for element in target.elts:
                self.assign(element, Unknown("it is unpacked from an unknown value"), None)
            return
        if isinstance(value, Poison):
            for element in target.elts:
                self.assign(element, value, None)
            return
        items = list(self.iterate(value, node or target))
        starred = [i for i, element in enumerate(target.elts) if isinstance(element, ast.Starred)]
        if starred:
            start = starred[0]
            end = len(items) - (count - start - 1)
            items = [*items[:start], items[start:end], *items[end:]]
        if len(items) != count:
            raise self.fail("T2C112", f"{len(items)} values for {count} names", node or target)
        nodes = self._element_nodes(node, count)
        for element, item, item_node in zip(target.elts, items, nodes, strict=True):
            self.assign(element, item, item_node)

    def _assign_item(self, target: ast.Subscript, value: Value) -> None:
        owner = self.evaluate(target.value)
        if isinstance(owner, Buffer):
            raise self.fail(
                "T2C115",
                f"{owner.name} is stored to outside the kernel's own code",
                target,
                help="make the function around it a @T.macro",
            )
        if isinstance(owner, bool | int | float | str | tuple | Expr):
            raise self.fail("T2C246", f"{self._quoted(target.value)} cannot be stored to", target)
        index = self.evaluate(target.slice)
        if isinstance(owner, list | dict) and not isinstance(index, Unknown):
            try:
                owner[self.hashable(index, target)] = value
            except (LookupError, TypeError) as error:
                raise self.fail("T2C112", f"this fails at build time: {error}", target) from None

    def _run_Delete(self, node: ast.Delete) -> Flow:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.frame.scope.cells.pop(target.id, None)
        return None

    def _run_Assert(self, node: ast.Assert) -> Flow:
        test = self.evaluate(node.test)
        if isinstance(test, Expr) and not test.device:
            sizes = " and ".join(sorted(test.sizes))
            verb = "is" if len(test.sizes) == 1 else "are"
            self.unchecked(node, ex.text(test), f"{sizes} {verb} known only at run time", test)
            return None
        if isinstance(test, Unknown):
            self.unchecked(node, self._quoted(node.test), test.reason, None)
            return None
        if self.truth(test, node.test, "this assertion") is False and self.exact:
            message = self.evaluate(node.msg) if node.msg else None
            said = f": {message}" if isinstance(message, str) else ""
            raise self.fail("T2C119", f"this assertion fails{said}", node.test)
        return None

    def unchecked(self, node: ast.Assert, quoted: str, why: str, test: Expr | None) -> None:
        """An assertion that cannot be decided when the kernel is built."""
        if self.exact:
            self.diagnostics.warning(
                "T2C123",
                f"{quoted} is not checked: {why}",
                self.span(node.test),
                help=f"-D {min(test.sizes)}=VALUE checks it now" if test is not None else None,
            )

    def _run_Raise(self, node: ast.Raise) -> Flow:
        raised = self.fail("T2C119", "this exception is raised at build time", node)
        if self.exact:
            raise raised
        if self.frame.scope.parent is None:
            self.stopped = self.stopped or raised.diagnostic
        return "return", Unknown("an exception is raised", self.span(node))

    def _run_Global(self, node: ast.Global) -> Flow:
        self.frame.scope.outer |= dict.fromkeys(node.names, self.frame.scope.root())
        return None

    def _run_Nonlocal(self, node: ast.Nonlocal) -> Flow:
        for name in node.names:
            scope = self.frame.scope.parent
            while scope is not None and name not in scope.cells:
                scope = scope.parent
            if scope is not None:
                self.frame.scope.outer[name] = scope
        return None

    # -- control flow ----------------------------------------------------------------------------

    def _run_If(self, node: ast.If) -> Flow:
        truth = self.truth(self.evaluate(node.test), node.test)
        if truth is not None:
            return self.execute_all(node.body if truth else node.orelse)
        stopped = self.stopped
        flows = [self.execute_all(node.body)]
        before = {name: cell for name, cell in self.frame.scope.cells.items()}
        flows.append(self.execute_all(node.orelse))
        self.stopped = stopped  # neither is sure
        for name, cell in self.frame.scope.cells.items():
            old = before.get(name)
            if old is not None and old is not cell and not _same(old.value, cell.value):
                cell.value = Unknown("it depends on an unknown condition", self.span(node.test))
        returned = [flow[1] for flow in flows if flow is not None and flow[0] == "return"]
        if len(returned) == 2:
            return "return", _first_known(returned)
        return ("perhaps", returned[0]) if returned else None

    def _run_For(self, node: ast.For) -> Flow:
        items = self.evaluate(node.iter)
        if isinstance(items, Unknown | Foreign) and not self.exact:
            self.assign(node.target, Unknown("it iterates over an unknown value"), None)
            flow = self.execute_all(node.body)
            return ("perhaps", flow[1]) if flow is not None and flow[0] == "return" else None
        for item in self.iterate(items, node.iter):
            self.assign(node.target, item, None)
            for name in _target_names(node.target):
                self.frame.scope.cells[name].nameable = False
            flow = self.execute_all(node.body)
            if flow == _BREAK:
                return None
            if flow is not None and flow[0] == "return":
                return flow
        return self.execute_all(node.orelse)

    def _run_While(self, node: ast.While) -> Flow:
        while True:
            self.burn(node)
            truth = self.truth(self.evaluate(node.test), node.test)
            if truth is False:
                return self.execute_all(node.orelse)
            flow = self.execute_all(node.body)
            if flow == _BREAK:
                return None
            if flow is not None and flow[0] == "return":
                return flow
            if truth is None:
                return None

    def _run_With(self, node: ast.With) -> Flow:
        for item in node.items:
            value = self.evaluate(item.context_expr)
            if item.optional_vars is not None:
                known = not isinstance(value, LanguageName)
                self.assign(item.optional_vars, value if known else Unknown("a context"), None)
        return self.execute_all(node.body)

    def _run_Try(self, node: ast.Try) -> Flow:
        for body in (node.body, node.orelse, node.finalbody):
            flow = self.execute_all(body)
            if flow is not None:
                return flow
        return None


def _keyword(node: ast.stmt) -> str:
    return {"AsyncFunctionDef": "async def", "AsyncFor": "async for"}.get(
        type(node).__name__, type(node).__name__.lower()
    )


def _target_names(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]


def _same(left: Value, right: Value) -> bool:
    plain = (int, float, str, bool, type(None), HostTensor)
    return left is right or (
        isinstance(left, plain) and type(left) is type(right) and left == right
    )


def _first_known(values: list[Value]) -> Value:
    return next((value for value in values if not isinstance(value, Unknown)), values[0])


def names_bound_once(body: list[ast.stmt]) -> frozenset[str]:
    """The names that one plain assignment of a function's body binds, and nothing else does."""
    plain: dict[str, int] = {}
    for node in ast.walk(ast.Module(body, [])):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            plain[node.id] = plain.get(node.id, 0) + 1
        elif isinstance(node, ast.For | ast.comprehension):
            for name in _target_names(node.target):
                plain[name] = 2
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            plain[node.target.id] = 2
    return frozenset(name for name, count in plain.items() if count == 1)
