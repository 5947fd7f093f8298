"""Whether an element says which thread touches it, or in which round of a loop it is touched.

Statements that share their work out in the same way and touch elements of the same form meet in a
thread only if the element determines the iteration: `S[i + 8 * k]` does not, once `k` has gone on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from math import gcd
from typing import TypeVar

from tile2c.transpile.ir.expr import Binary, Call, Expr, Load, Var
from tile2c.transpile.ir.forms import Launch
from tile2c.transpile.ir.walk import statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.facts import linear
from tile2c.transpile.record import record

Part = TypeVar("Part", bound=Expr)


@record(kw_only=True)
class Element:
    """Which element of a buffer an access means, as indices, one a dimension.

    `of_threads`: variables by which the thread is chosen; `inside`: others that take all their values in
    the statement. `ranges`: the first value and how many, where these are numbers. `mapping`: what else
    the choice depends on. `changing`: those of the buffers read by the indices that the kernel
    writes, or each thread has for itself.
    """

    index: tuple[Expr, ...]
    of_threads: frozenset[str]
    inside: frozenset[str] = frozenset()
    ranges: tuple[tuple[str, int, int], ...] = ()
    mapping: tuple[Expr, ...] = ()
    changing: frozenset[str] = frozenset()
    of_tensor: bool = False

    def range_of(self, name: str) -> tuple[int, int | None]:
        """The least value of the variable and how many it has; None if that is not known."""
        return next(((low, count) for x, low, count in self.ranges if x == name), (0, None))


@record
class _Term:
    """`factor * name`; no name for what nothing is known of but that it is an integer."""

    factor: int
    name: str | None
    count: int | None

    @property
    def span(self) -> int | None:
        """How far it moves the index at most; None: any distance."""
        return None if self.count is None else abs(self.factor) * max(self.count - 1, 0)


def one_thread(element: Element, changed: frozenset[str] = frozenset()) -> bool:
    """Whether all who touch one element in this way are the same thread; `changed`: names whose
    values differ between them."""
    if any(_varies(part, element, changed) for part in element.mapping):
        return False
    return element.of_threads <= _determined(element, changed)


def one_round(element: Element, var: str, changed: frozenset[str]) -> bool:
    """Whether an element is touched in one round of the loop over `var` only."""
    return var in _determined(element, changed)


def never_same(first: Element, second: Element, changed: frozenset[str] = frozenset()) -> bool:
    """Whether no element is meant by both; `changed`: names whose values differ between them."""
    pairs = zip(first.index, second.index, strict=True)
    return any(_differ(a, first, c, second, changed) for a, c in pairs)


def _differ(a: Expr, first: Element, c: Expr, second: Element, changed: frozenset[str]) -> bool:
    """Whether two indices of one dimension are never equal."""
    total, unit, steady = 0, 0, dict[Expr, int]()
    least = most = 0
    for sign, index, element in ((1, a, first), (-1, c, second)):
        form = linear(index)
        total += sign * form.constant
        for atom, factor in form.terms:
            factor *= sign
            if not _varies(atom, element, changed | element.of_threads | element.inside):
                steady[atom] = steady.get(atom, 0) + factor
                continue
            low, count = element.range_of(atom.name) if isinstance(atom, Var) else (0, None)
            if count is None:
                return False
            ends = (factor * low, factor * (low + count - 1))
            total, unit = total + factor * low, gcd(unit, factor)
            least, most = least + min(ends) - factor * low, most + max(ends) - factor * low
    if any(steady.values()):
        return False
    return total + least > 0 or total + most < 0 or (unit > 0 and total % unit != 0)


def names_places(element: Element) -> bool:
    """Whether the place is read from memory, or computed by other than arithmetic."""
    inside = [x for part in element.index for x in b.walk(part)]
    loads = (x for x in inside if isinstance(x, Load) and x.buffer.scope != "variable")
    return any(loads) or any(isinstance(x, Call) for x in inside)


def _determined(element: Element, changed: frozenset[str]) -> set[str]:
    """Names whose values follow from the element."""
    found: set[str] = set()
    while True:
        open_names = (changed | element.of_threads | element.inside) - found
        more: set[str] = set()
        for part in _whole_numbers(element, open_names):
            more |= _solved(_terms(part, element, open_names))
        if more <= found:
            return found
        found |= more


def _whole_numbers(element: Element, names: Set[str]) -> tuple[Expr, ...]:
    """The indices, and numbers of which both the quotient and the remainder are among them.

    By one divisor: where that changes with these names, several numbers have the same two.
    """
    halves: dict[tuple[Expr, Expr], set[str]] = {}
    for part in element.index:
        if isinstance(part, Binary) and part.op in ("//", "%"):
            if not _varies(part.b, element, names):
                halves.setdefault((part.a, part.b), set()).add(part.op)
    return (*element.index, *(whole for (whole, _), ops in halves.items() if len(ops) == 2))


def _terms(expr: Expr, element: Element, names: Set[str]) -> list[_Term]:
    """What moves the index while these names change."""
    atoms = [(atom, c) for atom, c in linear(expr).terms if _varies(atom, element, names)]
    if len(atoms) == 1 and isinstance(atoms[0][0], Binary) and atoms[0][0].op == "^":
        sides = [x for x in (atoms[0][0].a, atoms[0][0].b) if _varies(x, element, names)]
        if len(sides) == 1:  # it tells as much as this side alone
            return _terms(sides[0], element, names)
    found: list[_Term] = []
    for atom, factor in atoms:
        period = (b.known(atom.b) or 0) if isinstance(atom, Binary) and atom.op == "%" else 0
        if isinstance(atom, Var):
            found.append(_Term(factor, atom.name, element.range_of(atom.name)[1]))
        elif period > 0 and not mentioned((atom,)) & element.of_threads:
            found.append(_Term(factor, None, period))
        elif period > 0 and isinstance(atom, Binary):
            inner = _terms(atom.a, element, names)
            found += [_Term(factor * x.factor, x.name, x.count) for x in inner]
            found.append(_Term(factor * period, None, None))
        else:
            found.append(_Term(factor, None, None))
    return found


def _varies(expr: Expr, element: Element, names: Set[str]) -> bool:
    """Whether the expression may have several values while these names change."""
    for part in b.walk(expr):
        match part:
            case Load() if part.buffer.name in element.changing:
                return True
            case Var() if part.name in names:
                return True
            case Var() if part.kind == "thread" and part.name not in element.of_threads:
                return True
            case Call():
                return True
    return False


def _solved(terms: list[_Term]) -> set[str]:
    """Names whose value is known if the sum of the terms is: digits of a number in mixed radix."""
    names = [term.name for term in terms]
    terms = sorted(terms, key=lambda term: abs(term.factor))
    groups: list[list[_Term]] = [[]]
    span: int | None = 0
    for place, term in enumerate(terms):
        unit = gcd(*(x.factor for x in terms[place:]))
        if groups[-1] and span is not None and unit > span:
            groups.append([])
        groups[-1].append(term)
        span = None if span is None or term.span is None else span + term.span
    alone = {group[0].name for group in groups if len(group) == 1}
    return {name for name in alone if name is not None and names.count(name) == 1}


def ranges_of(
    index: Sequence[Expr], ranges: Mapping[str, tuple[Expr, Expr]]
) -> tuple[tuple[str, int, int], ...]:
    """First value and number of values of the loop variables in the indices, where these are numbers."""
    found: dict[str, tuple[int, int]] = {}
    for name in mentioned(index):
        low, high = map(b.known, ranges[name]) if name in ranges else (None, None)
        if low is not None and high is not None:
            found[name] = (low, high - low + 1)
    return tuple((name, *found[name]) for name in sorted(found))


def mentioned(index: Sequence[Expr]) -> set[str]:
    """Names of the variables in the indices."""
    return {var.name for var in _parts(index, Var)}


def changing_among(index: Sequence[Expr], launch: Launch) -> frozenset[str]:
    """The buffers read by the indices whose elements are not the same all through the launch."""
    buffers = {load.buffer.name: load.buffer for load in _parts(index, Load)}
    if not buffers:
        return frozenset()
    written = {x.name for stmt in statements(launch.body) for x in writes(stmt)}
    return frozenset(x for x in buffers if buffers[x].scope != "global" or x in written)


def _parts(index: Sequence[Expr], kind: type[Part]) -> Iterator[Part]:
    return (x for part in index for x in b.walk(part) if isinstance(x, kind))
