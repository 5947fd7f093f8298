"""Who runs which iteration of a parallel loop: over a fragment's layout, or over coalesced chunks."""

from __future__ import annotations

from dataclasses import field
from math import prod

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Buffer, Const, Expr, Var, const
from tile2c.transpile.ir.forms import Stmt, Store
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CStmt, Loop
from tile2c.transpile.lower.simt.access import all_loads, all_stores, vector_width
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.layouts import Digit, Layout
from tile2c.transpile.lower.simt.values import Place, convert
from tile2c.transpile.record import record


@record(frozen=False)
class Iteration:
    """How the loop is run by the threads."""

    place: Place  # coordinates of the first element of a vector
    vector: Expr | None  # C variable over a vector's elements
    width: int
    frames: list[CStmt]  # loops from the outside, bodies empty
    coordinates: list[
        tuple[str, Expr]
    ]  # C name and value of each loop variable, set in the innermost
    masks: list[Expr]  # C conditions under which this thread has this element at all
    once: list[Expr]  # C conditions that pick one of several replicas, for effects on memory
    owner: tuple[object, ...]
    outside: list[CStmt] = field(default_factory=list)  # declarations in front of the loops


@record(kw_only=True)
class ParallelLoop:
    """A loop to lower: from T.Parallel, or made from a copy or a fill."""

    loop_vars: tuple[Var, ...]
    extents: tuple[Expr, ...]
    body: tuple[Stmt, ...]
    quote: str
    comments: tuple[str, ...]
    span: Span | None = None
    layout: Layout | None = None
    asynchronous: bool = False  # copies to shared memory are only started
    exact: bool = False  # elements of a layout's padding are left out, whatever they are for


def only_fragments(loop: ParallelLoop) -> bool:
    """Whether the loop writes nothing but fragments, up to their ends, and reads nothing without guards:
    then padding is harmless."""
    extents = {var.name: b.known(e) for var, e in zip(loop.loop_vars, loop.extents, strict=True)}
    for stmt in loop.body:
        if not isinstance(stmt, Store) or stmt.buffer.scope != "fragment":
            return False
        for part, extent in zip(stmt.index, stmt.buffer.shape, strict=True):
            if isinstance(part, Var) and extents.get(part.name) != b.known(extent):
                return False
    return all(load.buffer.scope in ("fragment", "global") for load in all_loads(loop.body))


def iterate(ctx: Context, loop: ParallelLoop, names: list[str]) -> Iteration:
    """Distributes the loop; `names` are its variables in the text."""
    if loop.layout is not None:
        return _over_layout(ctx, loop, loop.layout, names)
    return _over_chunks(ctx, loop, names)


def _over_layout(ctx: Context, loop: ParallelLoop, layout: Layout, names: list[str]) -> Iteration:
    """Every thread visits the elements it holds."""
    last = len(loop.loop_vars) - 1
    accesses = [*memory_accesses(loop)]
    first = layout.dims[last][:1]
    vector: Digit | None = None
    if first and first[0].holder == "value" and first[0].extent > 1:
        width = vector_width(ctx, accesses, loop.loop_vars[last].name, first[0].extent)
        if width == first[0].extent:
            vector = first[0]
    digits: dict[tuple[int, Digit], Expr] = {}
    frames: list[CStmt] = []
    taken: list[str] = []
    vector_var: Expr | None = None
    visited = layout.value_digits()
    if any(buffer.scope == "global" for buffer, _ in accesses):
        # Row by row: a row's place in memory, and whether it is inside, are found once.
        visited = tuple(sorted(visited, key=lambda found: found[0]))
    for dim, digit in visited:
        name = ctx.namer.ours(digit.name, f"{digit.name}_{names[dim]}")
        taken.append(name)
        digits[(dim, digit)] = b.local(name)
        if digit is vector and dim == last:
            vector_var = b.local(name)
            digits[(dim, digit)] = vector_var
        else:
            frames.append(loop_over(name, const(digit.extent)))
    for name in taken:
        ctx.namer.release(name)
    coordinates: list[tuple[str, Expr]] = []
    masks: list[Expr] = []
    values: list[Expr] = []
    for dim, name in enumerate(names):
        skip = vector if dim == last else None
        value = coordinate(ctx, layout, dim, digits, skip)
        if not _plain(value):
            coordinates.append((name, value))
            value = b.local(name)
        values.append(value)
        if layout.padded(dim) and (loop.exact or not only_fragments(loop)):
            masks.append(b.less(value, loop.extents[dim]))
    place = Place(
        values={var.name: value for var, value in zip(loop.loop_vars, values, strict=True)},
        dims={var.name: dim for dim, var in enumerate(loop.loop_vars)},
        layout=layout,
        digits=digits,
    )
    once = [
        b.compare("==", ctx.thread_digit(weight, extent), const(0))
        for weight, extent in layout.replicas()
    ]
    owner = ("layout", tuple(layout.owners(dim) for dim in range(len(names))), layout.shape)
    width = vector.extent if vector is not None else 1
    _unroll(frames, layout.values)
    return Iteration(place, vector_var, width, frames, coordinates, masks, once, owner)


def _plain(value: Expr) -> bool:
    """Whether a coordinate needs no name: a number, or a name of ours, which are ints.

    `threadIdx.x` is unsigned in C: what is taken from it would never be negative.
    """
    return isinstance(value, Const) or (isinstance(value, Var) and "." not in value.name)


def _unroll(frames: list[CStmt], values: int) -> None:
    """Loops over registers are unrolled: a run-time index would send them to local memory."""
    if frames and values >= 16:
        first = frames[0]
        assert isinstance(first, Loop)
        frames[0] = changed(first, unroll=True)


def changed(loop: Loop, **changes: object) -> Loop:
    """The loop with other fields."""
    from dataclasses import replace

    return replace(loop, **changes)  # type: ignore[arg-type]


def coordinate(
    ctx: Context,
    layout: Layout,
    dim: int,
    digits: dict[tuple[int, Digit], Expr],
    skip: Digit | None = None,
) -> Expr:
    """The coordinate of `dim` from the thread and the value digits, slow digits first."""
    terms: list[Expr] = []
    for digit in reversed(layout.dims[dim]):
        if digit.extent == 1 or digit is skip:
            continue
        place = layout.place(dim, digit)
        if digit.holder == "thread":
            terms.append(ctx.thread_digit(digit.weight, digit.extent, place))
        else:
            terms.append(b.mul(digits[(dim, digit)], const(place)))
    named = [t for t in terms if isinstance(t, Var) and t.name in ctx.terms.values()]
    rest = [t for t in terms if t not in named]
    return b.add(*named, *rest) if terms else const(0)


def _over_chunks(ctx: Context, loop: ParallelLoop, names: list[str]) -> Iteration:
    """Coalesced: consecutive threads take consecutive vectors of the last dimension."""
    extents = [b.known(extent) for extent in loop.extents]
    width = chunk_width(ctx, loop, extents)
    place = Place(
        values={var.name: b.local(name) for var, name in zip(loop.loop_vars, names, strict=True)}
    )
    vector = _scoped(ctx, "v", "e") if width > 1 else None
    owner = ("chunks", tuple(loop.extents), width, ctx.threads)
    if all(extent is not None for extent in extents):
        sizes = [extent or 1 for extent in extents]
        frames, coordinates, masks = _fixed_chunks(ctx, loop, sizes, width, names)
    else:
        frames, coordinates = _counted_chunks(ctx, loop, extents, width, names)
        masks = []
    fixed = [(name, value) for name, value in coordinates]
    return Iteration(place, vector, width, frames, fixed, masks, [], owner)


def chunk_width(ctx: Context, loop: ParallelLoop, extents: list[int | None]) -> int:
    """Elements a thread takes at once: narrower where threads would have nothing to do."""
    inner = extents[-1]
    if inner is None:
        return 1
    width = vector_width(ctx, memory_accesses(loop), loop.loop_vars[-1].name, inner)
    if loop.asynchronous or any(extent is None for extent in extents):
        return width
    total = prod(extent or 1 for extent in extents)
    while width > 1 and total // width < ctx.threads:
        width //= 2
    return width


def _fixed_chunks(
    ctx: Context, loop: ParallelLoop, sizes: list[int], width: int, names: list[str]
) -> tuple[list[CStmt], list[tuple[str, Expr]], list[Expr]]:
    """Extents known: every thread takes the same number of turns, or the last turn is masked."""
    last = len(sizes) - 1
    row = sizes[last] // width
    chunks = prod(sizes[:last]) * row
    turns = -(-chunks // ctx.threads)
    frames: list[CStmt] = []
    turn: Expr = const(0)
    if turns > 1:
        turn = _scoped(ctx, "turn", "turn_of_copy")
        # Nothing waits behind the stores of rows that leave: once is enough of their code.
        once = any(load.buffer.name in ctx.leaving for load in all_loads(loop.body))
        frame = loop_over(_variable(turn), const(turns))
        frames = [changed(frame, unroll=turns <= 16 and not once, rolled=once)]
    thread = ctx.thread()
    if ctx.threads % row == 0 and chunks % ctx.threads == 0 and last > 0:
        # Whole rows a turn: the column stays the thread's own.
        rows_a_turn = ctx.threads // row
        first = b.add(b.mul(turn, const(rows_a_turn)), b.div(thread, const(row)))
        column = b.mul(b.mod(thread, const(row)), const(width)) if row > 1 else const(0)
        return frames, [*_decode(first, sizes[:last], names[:last]), (names[last], column)], []
    chunk = b.add(b.mul(turn, const(ctx.threads)), thread)
    masks: list[Expr] = []
    coordinates: list[tuple[str, Expr]] = []
    if chunks > row and not isinstance(chunk, Var):
        name = ctx.namer.ours("chunk", "piece")
        ctx.namer.release(name)
        coordinates.append((name, chunk))
        chunk = b.local(name)
    if chunks % ctx.threads:
        masks.append(b.less(chunk, const(chunks)))
    column = chunk if chunks == row else b.mod(chunk, const(row))
    rows = b.div(chunk, const(row)) if chunks > row else const(0)
    lead = _decode(rows, sizes[:last], names[:last])
    coordinates += [*lead, (names[last], b.mul(column, const(width)))]
    return frames, coordinates, masks


def _decode(index: Expr, sizes: list[int], names: list[str]) -> list[tuple[str, Expr]]:
    """Coordinates of a row-major index over `sizes`."""
    found: list[tuple[str, Expr]] = []
    for position in range(len(sizes) - 1, -1, -1):
        rest = prod(sizes[:position])
        part = index if rest == 1 else b.mod(index, const(sizes[position]))
        found.insert(0, (names[position], part))
        index = b.div(index, const(sizes[position]))
    return found


def _counted_chunks(
    ctx: Context, loop: ParallelLoop, extents: list[int | None], width: int, names: list[str]
) -> tuple[list[CStmt], list[tuple[str, Expr]]]:
    """Some extent is only known at run time: threads stride over the chunks."""
    last = len(extents) - 1
    place = Place(values={})
    bounds = [convert(ctx, extent, place) for extent in loop.extents]
    if last == 0:
        frame = changed(
            loop_over(names[0], bounds[0]),
            start=b.mul(ctx.thread(), const(width)),
            step=const(ctx.threads * width),
        )
        return [frame], []
    total = bounds[0]
    for bound in bounds[1:]:
        total = b.mul(total, bound)
    chunk = _scoped(ctx, "chunk", "piece")
    frame = changed(
        loop_over(_variable(chunk), b.div(total, const(width))),
        start=ctx.thread(),
        step=const(ctx.threads),
    )
    rest: Expr = chunk
    coordinates: list[tuple[str, Expr]] = []
    for dim in range(last, -1, -1):
        inner = extents[last]
        count = const(inner // width) if dim == last and inner is not None else bounds[dim]
        part = rest if dim == 0 else b.mod(rest, count)
        coordinates.insert(0, (names[dim], b.mul(part, const(width)) if dim == last else part))
        rest = b.div(rest, count)
    return [frame], coordinates


def _scoped(ctx: Context, *wishes: str) -> Var:
    """A name that ends with the loop it is for."""
    name = ctx.namer.ours(*wishes)
    ctx.namer.release(name)
    return b.local(name)


def _variable(expr: Expr) -> str:
    assert isinstance(expr, Var)
    return expr.name


def loop_over(name: str, stop: Expr) -> Loop:
    """`for (int name = 0; name < stop; ++name)`, its body still empty."""
    return Loop(var=name, start=const(0), stop=stop, step=const(1), body=(), dtype=INT32)


def memory_accesses(loop: ParallelLoop) -> list[tuple[Buffer, tuple[Expr, ...]]]:
    """(buffer, index) of everything the loop reads and writes."""
    loads = [(load.buffer, load.index) for load in all_loads(loop.body)]
    return [*loads, *all_stores(loop.body)]
