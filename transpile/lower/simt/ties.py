"""Which dimensions of fragments and loops have to be distributed over the threads alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Buffer, Expr, Var
from tile2c.transpile.ir.forms import Parallel, Reduce, Scan, Stmt, Store
from tile2c.transpile.ir.walk import expressions, loads
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.access import all_loads, all_stores
from tile2c.transpile.lower.simt.layouts import Digit, Layout
from tile2c.transpile.lower.simt.outer_statements import walk

_MOST_KEPT = 64  # elements of a fragment that every thread keeps, for indices that are not spread

Slot = tuple[str, int]  # ("x", dimension) or ("loop 3", dimension)


class Groups:
    """Union-find over slots."""

    def __init__(self) -> None:
        self.parent: dict[Slot, Slot] = {}

    def find(self, slot: Slot) -> Slot:
        self.parent.setdefault(slot, slot)
        while self.parent[slot] != slot:
            slot = self.parent[slot]
        return slot

    def tie(self, a: Slot, c: Slot) -> bool:
        self.parent[self.find(a)] = self.find(c)
        return True


class Classes(Groups):
    """Slots that are distributed alike. No two dimensions of one tile or loop can be; nor can slots
    that matrix instructions have given to different threads."""

    def __init__(self, pinned: Mapping[str, Layout] | None = None) -> None:
        super().__init__()
        self.members: dict[Slot, set[str]] = {}
        self.held: dict[Slot, list[tuple[str, int, int]]] = {}
        self.whole: dict[Slot, tuple[Digit, ...]] = {}  # classes of which each thread has all
        for name, layout in (pinned or {}).items():
            for dim, digits in enumerate(layout.dims):
                self.held[(name, dim)] = [digit.owner() for digit in digits]

    def tie(self, a: Slot, c: Slot) -> bool:
        """Joins two classes; False, and nothing done, where that cannot be."""
        first, second = self.find(a), self.find(c)
        if first == second:
            return True
        names = self.members.get(first, {first[0]}), self.members.get(second, {second[0]})
        if names[0] & names[1]:
            return False
        owners = self.held.get(first), self.held.get(second)
        if owners[0] is not None and owners[1] is not None and owners[0] != owners[1]:
            return False
        self.parent[first] = second
        self.members[second] = names[0] | names[1]
        if owners[0] is not None:
            self.held[second] = owners[0]
        if first in self.whole:
            self.whole[second] = self.whole[first]
        return True

    def keep(self, slot: Slot, extent: int) -> bool:
        """Every thread gets all elements along the slot; False where others have decided on it."""
        root = self.find(slot)
        whole = _kept(extent)
        owners = [digit.owner() for digit in whole]
        if self.held.setdefault(root, owners) != owners:
            return False
        self.whole[root] = whole
        return True


def _kept(extent: int) -> tuple[Digit, ...]:
    return (Digit("value", extent, 1, "k"),) if extent > 1 else ()


class Apart(InputError):
    """A statement asks for elements of a fragment that its threads do not hold.

    `index` is None where the whole fragment is meant.
    """

    def __init__(self, stmt: Stmt, buffer: Buffer, index: tuple[Expr, ...] | None = None) -> None:
        problem = failure(
            "T2C503",
            f"{buffer.name} is held by other threads than the ones that use its elements here",
            stmt.span,
            help="pass the values through a shared tile",
        )
        super().__init__(problem.diagnostic)
        self.stmt, self.buffer, self.index = stmt, buffer, index


def tie(
    body: Sequence[Stmt], pinned: Mapping[str, Layout] | None = None
) -> tuple[Classes, list[tuple[str, Parallel]], set[Slot]]:
    """Dimensions that have to be distributed alike; the loops by name; dimensions that are reduced."""
    classes = Classes(pinned)
    loops: list[tuple[str, Parallel]] = []
    reduced: set[Slot] = set()
    _keep_indexed(classes, body)
    for number, stmt in enumerate(walk(body)):
        if isinstance(stmt, Parallel):
            loops.append((f"loop {number}", stmt))
            _tie_loop(classes, f"loop {number}", stmt)
        elif isinstance(stmt, Reduce):
            _tie_reduction(classes, stmt, reduced)
        elif isinstance(stmt, Scan) and stmt.dst.buffer.scope == "fragment":
            _tie_scan(classes, stmt, reduced)
    return classes, loops, reduced


def accessed(loop: Parallel) -> list[tuple[Buffer, tuple[Expr, ...]]]:
    """What the loop reads, then what it stores."""
    return [*((x.buffer, x.index) for x in all_loads(loop.body)), *all_stores(loop.body)]


def _tie_loop(classes: Classes, name: str, loop: Parallel) -> None:
    """What the loop writes decides who runs it, accumulators before all; else what it reads."""
    positions = {var.name: place for place, var in enumerate(loop.loop_vars)}
    fixed = all(b.known(extent) is not None for extent in loop.extents)
    uses = [use for use in (*all_stores(loop.body), *_read(loop)) if use[0].scope == "fragment"]
    uses.sort(key=lambda use: (use[0].name, 0) not in classes.held)
    for buffer, index in uses:
        for dim, part in enumerate(index):
            if b.known(buffer.shape[dim]) == 1 and b.literal(part, 0):
                continue
            if not any(b.mentions(part, name) for name in positions) and (
                classes.find((buffer.name, dim)) in classes.whole
            ):
                continue
            plain = isinstance(part, Var) and part.name in positions and fixed
            if not plain or not classes.tie(
                (buffer.name, dim),
                (name, positions[part.name]),  # type: ignore[attr-defined]
            ):
                raise Apart(loop, buffer, index)


def _keep_indexed(classes: Classes, body: Sequence[Stmt]) -> None:
    """Dimensions that serial code indexes: every thread keeps all their elements, if they are few.

    Raises Apart for the rest: they are read from a shared tile.
    """
    stored = {
        stmt.buffer.name
        for stmt in walk(body)
        if isinstance(stmt, Store) and stmt.buffer.scope == "fragment"
    }
    for stmt in walk(body):
        alone: set[str] = set()  # the variables of T.Parallel
        if isinstance(stmt, Parallel):
            alone = {var.name for var in stmt.loop_vars}
        for buffer, index in _serial_uses(stmt):
            for dim, part in enumerate(index):
                extent = b.known(buffer.shape[dim]) or 1
                if extent == 1 or any(b.mentions(part, name) for name in alone):
                    continue
                looked_up = not alone and b.known(part) is None and buffer.name not in stored
                kept = not looked_up and _few(buffer, index, alone)
                if not kept or not classes.keep((buffer.name, dim), extent):
                    raise Apart(stmt, buffer, index)


def _few(buffer: Buffer, index: tuple[Expr, ...], alone: set[str]) -> bool:
    """Whether a thread can keep all that these indices reach."""
    return _MOST_KEPT >= prod(
        b.known(extent) or 1
        for extent, part in zip(buffer.shape, index, strict=True)
        if not any(b.mentions(part, name) for name in alone)
    )


def _serial_uses(stmt: Stmt) -> list[tuple[Buffer, tuple[Expr, ...]]]:
    """Elements of fragments that the statement itself reads and writes."""
    if isinstance(stmt, Parallel):
        found = accessed(stmt)
    else:
        found = [(load.buffer, load.index) for e in expressions(stmt) for load in loads(e)]
        if isinstance(stmt, Store):
            found.append((stmt.buffer, stmt.index))
    return [use for use in found if use[0].scope == "fragment"]


def _read(loop: Parallel) -> list[tuple[Buffer, tuple[Expr, ...]]]:
    return [(load.buffer, load.index) for load in all_loads(loop.body)]


def _tie_reduction(classes: Classes, stmt: Reduce, reduced: set[Slot]) -> None:
    src, dst = stmt.src.buffer, stmt.dst.buffer
    dims = [k for k, part in enumerate(stmt.src.ranges) if not part.point]
    gone = dims[stmt.dim]
    if src.scope == "fragment":
        reduced.add((src.name, gone))
    rest = [dim for dim in dims if dim != gone]
    own = [k for k, part in enumerate(stmt.dst.ranges) if not part.point]
    if len(own) == len(dims):  # kept as 1
        own = [k for position, k in enumerate(own) if position != stmt.dim]
    if src.scope == "fragment" and dst.scope == "fragment":
        for one, other in zip(rest, own, strict=False):
            if not classes.tie((src.name, one), (dst.name, other)):
                raise Apart(stmt, dst)


def _tie_scan(classes: Classes, stmt: Scan, reduced: set[Slot]) -> None:
    """A scan in registers: source and result are held alike, lines best within a warp."""
    src, dst = stmt.src.buffer, stmt.dst.buffer
    reduced.add((dst.name, stmt.dim))
    for dim in range(len(dst.shape)):
        if src != dst and not classes.tie((src.name, dim), (dst.name, dim)):
            raise Apart(stmt, dst)
