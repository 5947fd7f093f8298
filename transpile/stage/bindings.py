"""Names in device code: temporaries, variables, aliases, and where each of them ends."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field

from tile2c.transpile.record import record
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Access, Buffer
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.host import Host
from tile2c.transpile.stage.inlining import Inliner
from tile2c.transpile.stage.spelling import RESERVED
from tile2c.transpile.stage.state import is_variable
from tile2c.transpile.stage.trace_values import Reference, RuntimeRegion
from tile2c.transpile.stage.values import (
    Cell,
    Poison,
    Scope,
    Unknown,
    Value,
)


@record(frozen=False)
class Bindings(Inliner):
    """Adds the binding of names to the evaluator."""

    owners: dict[str, tuple[Scope | None, str]] = field(default_factory=dict)
    escaped: set[str] = field(default_factory=set)  # temporaries that containers hold
    thread_names: dict[str, int] = field(default_factory=dict)  # thread indices, their dimension
    in_kernel: bool = False

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
        computed = cell is not None and isinstance(cell.value, Expr) and cell.value.device
        before = cell if cell is not None and scope.cells.get(target.id) is cell else None
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
        hides = isinstance(value, int | float) and computed  # what the kernel computed
        region = self._ends_with(before, value)
        if (isinstance(value, Buffer) or hides) and self.regions:
            region = self.regions[-1]
        if region is not None:
            region.bound.append((scope, cell, self.span(target)))

    def _ends_with(self, before: Cell | None, value: Value) -> RuntimeRegion | None:
        """The run-time region after which a name that was bound to `value` means nothing.

        A condition decides whether it has the new value or that of `before`, and the host cannot;
        a loop runs often, but what it binds at build time is bound once.
        """
        if isinstance(value, Poison | Unknown):
            return None
        if before is not None and type(before.value) is type(value) and before.value == value:
            return None
        for region in reversed(self.regions[self.region_floor :]):
            if region.kind == "if" or (before is None and region.kind in ("for", "while")):
                return region
        return None

    def _bind_temporary(self, target: ast.Name, value: Expr) -> None:
        """A `const` of the kernel: its value now, whatever is stored later."""
        name = self.claim(target.id, "temporary")
        left = ex.name(name, self.span(target), value.dtype)
        self.residual.assign(left, value, self.here)
        self.bind_device(target.id, left)
        if value.kind == "call" and value.op == "get_thread_binding":
            self.thread_names[name] = int(value.args[0].value or 0)

    def bind_device(self, name: str, value: Expr) -> None:
        """Binds a name to what the kernel computed; it ends with the region around."""
        cell = self.define(self.frame.scope, name, value)
        if self.regions:
            self.regions[-1].bound.append((self.frame.scope, cell, value.span))

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
            names = {name for element in target.elts if (name := _stored_name(element))}
            touched = [
                isinstance(item, Expr | Buffer) and self._reads_any(item, names) for item in items
            ]
            if any(touched[1:]):
                wishes = [f"new_{_stored_name(element) or 'value'}" for element in target.elts]
                value = tuple(
                    self._snapshot(
                        element, item, wish if wishes.count(wish) == 1 else f"{wish}_{at}"
                    )
                    for at, (element, item, wish) in enumerate(
                        zip(target.elts, items, wishes, strict=True)
                    )
                )
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

    def _snapshot(self, target: ast.expr, item: Value, wish: str) -> Value:
        """The value before any of the targets changes, under a name of its own."""
        if not isinstance(item, Expr) and not is_variable(item):
            return item
        name = self.claim(wish, "temporary")
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
        args = self.element_args(access)
        target = ex.compound("index", "", args, access.span)
        self.residual.assign(target, value, self.here)

    def store_region(
        self, access: Access, value: Value, node: ast.expr | None, target: ast.expr
    ) -> None:
        """`buffer[a:b] = value`: a fill or a copy."""
        raise NotImplementedError


def _stored_name(target: ast.expr) -> str | None:
    """The variable or array that an assignment changes."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
