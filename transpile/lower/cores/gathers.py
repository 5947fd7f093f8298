"""Gathered tiles as copies of parts of rows, in loops over the runs that divisions make.

reads   `gather.Gather`        writes  a fill with zeros, `CopyIn` in loops
"""

from __future__ import annotations

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import walk
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Binary, Compare, Const, Expr, Logical, Unary, Var, const
from tile2c.transpile.ir.forms import Range, Region
from tile2c.transpile.lower.cores.context import Context, width_of
from tile2c.transpile.lower.cores.copies import prefill, row_pitch
from tile2c.transpile.lower.cores.gather import (
    Gather,
    Parts,
    at_zero,
    compared,
    in_run,
    slope,
)
from tile2c.transpile.lower.cores.layouts import is_zero, plus, times
from tile2c.transpile.lower.cores.plan import Branch, CopyIn, Local, Loop, Step, TensorRef, TileRef
from tile2c.transpile.lower.cores.regions import without
from tile2c.transpile.lower.cores.scalars import outside_guard
from tile2c.transpile.record import record


def lower_gather(stmt: Gather, context: Context) -> None:
    """The zeros, then the copies. Raises InputError for a gather that no copies make."""
    if context.tiles.lanes(stmt.tile.dtype) > 1 and stmt.columns.unit is not None:
        raise unaligned(stmt, context)
    prefill(context.layouts[stmt.tile.name], context)
    Gathering(stmt, context).lower()


@record(frozen=False)
class _Side:
    """One loop variable while the copies of one run are made: from `low` up to `high` of the tile."""

    parts: Parts
    extent: Expr
    place: Var  # counts within a run
    run: Var  # the run's number
    words: tuple[str, str]  # of its ends
    start: Expr = const(0)  # where the run starts in the tile, which may be in front of it
    low: Expr = const(0)
    high: Expr = const(0)
    inside: bool = True  # `low` is where the run starts, or the tile

    def spelled(self, expr: Expr) -> Expr:
        return in_run(expr, self.parts, self.run, self.place)


class Gathering:
    """The copies of one gather, for cores that copy rows to any place of a tile."""

    some = True  # a copy has to have rows and columns

    def __init__(self, stmt: Gather, context: Context) -> None:
        self.stmt = stmt
        self.context = context
        self.rows = self.side(stmt.rows, stmt.extents[0], "line", ("top", "bottom"))
        self.columns = self.side(stmt.columns, stmt.extents[1], "span", ("begin", "end"))
        self.guards: list[Expr] = []
        self.loops = 0  # around the copy
        self.given = {var.name for part in stmt.index for var in walk.variables(part)}

    def side(self, parts: Parts, extent: Expr, word: str, words: tuple[str, str]) -> _Side:
        names = self.context.names
        run = Var(dtype=INT32, name=names.fresh(word, f"{word}_number"), kind="loop")
        place = Var(dtype=INT32, name=names.fresh(f"{run.name}_place"), kind="temporary")
        return _Side(parts=parts, extent=extent, place=place, run=run, words=words)

    # ---- scalars

    def value(self, expr: Expr) -> Expr:
        return self.context.scalars.lower(expr, self.context.facts, self.context.emit)

    def local(self, expr: Expr, *names: str) -> Expr:
        """The value under a name, unless it has one or is a number."""
        lowered = self.value(expr)
        if isinstance(lowered, Var | Const):
            return lowered
        return self.named(expr, lowered, self.context.names.local(*names))

    def named(self, expr: Expr, lowered: Expr, name: str) -> Var:
        context = self.context
        context.emit(Local(name=name, dtype=lowered.dtype, value=lowered))
        var = Var(dtype=lowered.dtype, name=name, kind="temporary")
        context.facts = context.facts.with_meaning(var, expr)
        return var

    def index(self, expr: Expr, dim: int) -> Expr:
        """Where one index starts, under the name that the author gave it: it has gone with the loop."""
        last = dim == len(self.stmt.names) - 1
        word = "" if last else self.stmt.names[dim]
        return self.named_index(expr, word or f"{self.stmt.tensor.name}_{dim}")

    def named_index(self, expr: Expr, word: str) -> Expr:
        """A place in the tensor, under a name unless it is a number or has one."""
        lowered = self.value(expr)
        if isinstance(lowered, Var | Const):
            return lowered
        own = self.loops and word not in self.given
        return self.named(expr, lowered, word if own else self.context.names.local(word))

    def larger(self, a: Expr, b: Expr, *names: str) -> Expr:
        if a == b or self.context.facts.non_negative(_minus(a, b)):
            return a
        if self.context.facts.non_negative(_minus(b, a)):
            return b
        return self.local(_min_max("max", a, b), *names)

    def smaller(self, a: Expr, b: Expr, *names: str) -> Expr:
        if a == b or self.context.facts.non_negative(_minus(b, a)):
            return a
        if self.context.facts.non_negative(_minus(a, b)):
            return b
        return self.local(_min_max("min", a, b), *names)

    # ---- runs

    def lower(self) -> None:
        self.over(self.rows, lambda: self.over(self.columns, self.copy))

    def over(self, side: _Side, inner) -> None:  # type: ignore[no-untyped-def]
        """`inner` for each run of a side; without a loop where the tile lies in one run."""
        context, unit = self.context, side.parts.unit
        side.inside = True
        if unit is None:
            side.start, side.low, side.high = const(0), const(0), side.extent
            inner()
            return
        first = without(side.parts.counted, side.parts.var)
        extent = side.extent
        assert isinstance(extent, Const)
        size = int(extent.value)
        run = Binary(dtype=INT32, op="//", a=first, b=side.parts.size)
        if unit % size == 0 and context.facts.divisible(first, size):
            name = side.run.name
            side.run = self.named(run, self.value(run), name)
            start = _minus(times(side.run, side.parts.size), first)
            side.start = self.local(start, f"{name}_start")
            side.low, side.high = const(0), extent
            inner()
            return
        last = plus(first, _minus(extent, const(1)))
        stop = plus(Binary(dtype=INT32, op="//", a=last, b=side.parts.size), const(1))
        start, end = self.value(run), self.local(stop, f"{side.run.name}_end")
        facts = context.facts.with_range(side.run, run, stop)
        with context.nested(side.run, facts=facts) as scope:
            name = side.run.name
            length = side.parts.size
            side.start = self.local(_minus(times(side.run, length), first), f"{name}_start")
            side.low = self.larger(side.start, const(0), side.words[0])
            side.high = self.smaller(plus(side.start, length), extent, side.words[1])
            self.loops += 1
            inner()
            self.loops -= 1
        context.emit(
            Loop(
                var=side.run,
                start=start,
                stop=end,
                step=const(1),
                body=context.body(scope),
                independent=True,
            )
        )

    # ---- one rectangle

    def copy(self) -> None:
        """The copy of the part of one run of rows and one of columns that lies inside."""
        stmt, rows, columns = self.stmt, self.rows, self.columns
        self.guards = []
        index = [columns.spelled(rows.spelled(part)) for part in stmt.index]
        moving = self.moving(index)
        starts: list[Expr] = []
        for dim, part in enumerate(index):
            fixed = at_zero(at_zero(part, rows.place), columns.place)
            starts.append(self.index(fixed, dim))
        for condition in stmt.conditions:
            if not self.condition(condition, rows.parts.var, columns.parts.var, const(0)):
                spelled = columns.spelled(rows.spelled(condition))
                if not self.condition(spelled, rows.place, columns.place, None):
                    raise self.uneven()
        shape = stmt.tensor.shape
        last = len(shape) - 1
        for dim in range(len(shape)):
            if dim == last:
                self.clip(columns, starts[dim], const(1), shape[dim], self.fits(index[dim]))
            elif dim == moving[0]:
                self.clip(rows, starts[dim], const(moving[1]), shape[dim], False)
            else:
                outside = outside_guard((starts[dim],), (shape[dim],), self.context.facts)
                self.guards += [] if outside is None else [outside]
        self.emit(starts, moving)

    def moving(self, index: list[Expr]) -> tuple[int, int]:
        """(dimension, step) that rows move along. Raises InputError where no rows are gathered."""
        rows, columns, last = self.rows.place, self.columns.place, len(index) - 1
        found: list[tuple[int, int]] = []
        for dim, part in enumerate(index):
            down, across = slope(part, rows), slope(part, columns)
            if down is None or across is None or across != (dim == last) or (down and dim == last):
                raise self.uneven()
            if down:
                found.append((dim, down))
        if len(found) > 1 or (found and found[0][1] < 0):
            raise self.uneven()
        return found[0] if found else (-1, 0)

    def uneven(self) -> Exception:
        return uneven(self.stmt, self.context)

    def fits(self, index: Expr) -> bool:
        """Whether what counts along the last dimension never leaves it: x % n of n elements."""
        bound = self.stmt.tensor.shape[-1]
        unit = self.columns.parts.unit
        return index == self.columns.place and isinstance(bound, Const) and bound.value == unit

    def clip(self, side: _Side, first: Expr, step: Expr, bound: Expr, fits: bool) -> None:
        """Leaves only places of a side whose index, `first` + step * place, is in 0 .. bound."""
        if fits:
            return
        if not self.context.facts.non_negative(first):
            if step == const(1):
                self.raise_low(side, _minus(side.start, first))
            else:
                self.raise_low(side, plus(side.start, _up(_minus(const(0), first), step)))
        self.cut_high(side, plus(side.start, _up(_minus(bound, first), step)))

    def raise_low(self, side: _Side, least: Expr) -> None:
        word = side.words[0]
        side.inside = False
        side.low = self.larger(least, side.low, f"{word}_inside", f"{word}_within")

    def cut_high(self, side: _Side, most: Expr) -> None:
        word = side.words[1]
        if self.context.facts.non_negative(_minus(most, side.high)):
            return
        if sum(1 for _ in walk.parts(most)) > 3:  # long enough to get a name
            most = self.local(most, f"{side.run.name}_room")
        side.high = self.smaller(most, side.high, f"{word}_inside", f"{word}_within")

    def condition(self, condition: Expr, row: Var, column: Var, start: Expr | None) -> bool:
        """Whether a condition bounds one side, which it then does, or is the same for all of it.

        `row` and `column` count from `start` of the tile, by default where the runs start.
        """
        sides = compared(condition)
        rest = condition if sides is None else _minus(sides[1], sides[0])
        down, across = slope(rest, row), slope(rest, column)
        used = [var for var in walk.variables(condition) if var in (row, column)]
        if sides is None or not used:
            self.guards += [] if used else [condition]
            return not used
        if down is None or across is None or bool(down) == bool(across):
            return False
        side, var, step = (self.rows, row, down) if down else (self.columns, column, across)
        if step not in (1, -1):
            return False
        room = at_zero(rest, var)  # what is left is > 0, or >= 0
        origin = side.start if start is None else start
        if step == -1:
            self.cut_high(side, plus(origin, room if sides[2] else plus(room, const(1))))
        else:
            least = _minus(origin, room)
            self.raise_low(side, plus(least, const(1)) if sides[2] else least)
        return True

    def emit(self, starts: list[Expr], moving: tuple[int, int]) -> None:
        context, stmt = self.context, self.stmt
        rows, columns = self.rows, self.columns
        dim, step = moving
        index = list(starts)
        word = stmt.names[-1] or f"{stmt.tensor.name}_from"
        index[-1] = self.named_index(plus(index[-1], _minus(columns.low, columns.start)), word)
        if dim >= 0:
            index[dim] = plus(index[dim], times(_minus(rows.low, rows.start), step))
        whole = Region(
            buffer=stmt.tensor,
            ranges=tuple(Range(start=part, extent=const(1)) for part in index),
        )
        pitch: Expr = const(0)
        if dim >= 0:
            pitch = times(row_pitch(whole, dim, context), step)
        lowered = tuple(self.value(part) for part in index)
        offset = context.scalars.global_offset(stmt.tensor.shape, None, lowered)
        height = self.local(_minus(rows.high, rows.low), "height")
        width = self.local(_minus(columns.high, columns.low), "width")
        handle = context.scalars.handles[stmt.tensor.name]
        copy = self.step(TensorRef(handle=handle, offset=offset), height, width, pitch)
        some: list[Expr] = [
            Compare(dtype=BOOL, op=">", a=count, b=const(0))
            for count in (height, width)
            if self.some and not isinstance(count, Const)
        ]
        if self.guards:
            inside = _all(self.guards)
            name = context.names.local("inside", f"{stmt.tile.name}_inside")
            some.insert(0, self.named(inside, self.value(inside), name))
        if some:
            copy = Branch(condition=_all(some), then=(copy,))
        context.emit(copy)

    def step(self, source: TensorRef, height: Expr, width: Expr, pitch: Expr) -> Step:
        """The copy to the place where both sides are low. Raises InputError where that is no whole
        block of the tile, or zeros behind the copied parts of rows would meet others."""
        cut = not self.columns.inside or self.columns.high != self.columns.extent
        if cut and self.context.tiles.lanes(self.stmt.tile.dtype) > 1:
            raise unaligned(self.stmt, self.context)
        layout = self.context.layouts[self.stmt.tile.name]
        at = (self.rows.low, self.columns.low)
        offset = layout.offset(at)
        if len(layout.kept) == 2:  # in the author's words
            offset = plus(times(at[0], width_of(layout)), at[1])
        zero = offset is None or is_zero(offset)
        return CopyIn(
            dst=TileRef(tile=self.stmt.tile.name, offset=None if zero else offset),
            tensor=source.handle,
            offset=source.offset,
            rows=height,
            columns=width,
            pitch=pitch,
            tile_pitch=width_of(layout),
        )


def unaligned(stmt: Gather, context: Context) -> Exception:
    block = context.target.block_bytes
    return failure(
        "T2C538",
        f"{stmt.tile.name} is gathered from parts of rows of {stmt.tensor.name} that do not start at "
        f"multiples of {block} bytes in it, as copies need them to",
        stmt.span,
        help=f"let rows of {stmt.tensor.name} be a multiple of {block} bytes, in a product's operand",
    )


def uneven(stmt: Gather, context: Context) -> Exception:
    return failure(
        "T2C531",
        f"this index of {stmt.tensor.name} does not count along it, so no copies of "
        f"{context.target.name} bring the whole tile",
        stmt.span,
        help="index each dimension by its own T.Parallel variable, or load with T.copy",
    )


def _all(conditions: list[Expr]) -> Expr:
    whole = conditions[0]
    for part in conditions[1:]:
        whole = Logical(dtype=BOOL, op="and", a=whole, b=part)
    return whole


def _min_max(op: str, a: Expr, b: Expr) -> Expr:
    return Binary(dtype=INT32, op=op, a=a, b=b)  # type: ignore[arg-type]


def _minus(a: Expr, b: Expr) -> Expr:
    if is_zero(b):
        return a
    if is_zero(a) and not isinstance(b, Const):
        return Unary(dtype=INT32, op="-", a=b)
    if isinstance(a, Const) and isinstance(b, Const):
        return const(int(a.value) - int(b.value))
    return Binary(dtype=INT32, op="-", a=a, b=b)


def _up(room: Expr, step: Expr) -> Expr:
    """room / step, rounded up where it is positive; 0 or less where it is not."""
    if isinstance(step, Const) and step.value == 1:
        return room
    assert isinstance(step, Const)
    top = plus(room, const(int(step.value) - 1))
    return Binary(dtype=INT32, op="truncdiv", a=top, b=step)
