"""Folds what happens to finished sums into their store and their start: casts, ReLU, a bias.

reads   tile IR        writes  the same with `StoreSums` and `Begin` in place of tiles in between
why     on the way from L0C to global memory a unit converts and cuts off below 0, and sums may
        start from a bias: neither needs the vector cores, which share only global memory with
        the cube
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.expr import Binary, Buffer, Cast, Compare, Expr, Load, Select, Var
from tile2c.transpile.ir.forms import Range, Region, Stmt
from tile2c.transpile.lower.cores.cube.forms import Begin, StoreSums
from tile2c.transpile.lower.cores.cube.roles import Roles, is_number, touches, whole
from tile2c.transpile.record import record
from tile2c.transpile.targets.cube import CubeUnit


def fold(body: tuple[Stmt, ...], roles: Roles, unit: CubeUnit) -> tuple[Stmt, ...]:
    """The body with each fill of sums by 0 as `Begin`, and stores of sums as `StoreSums`.

    What cannot be folded stays as it is.
    """
    body = _stores(_unstaged(body, roles, unit), roles, unit)
    for name in roles.sums:
        body = _finished(body, name, unit)
    return body


# ---- tiles between sums and tensors


def _unstaged(body: tuple[Stmt, ...], roles: Roles, unit: CubeUnit) -> tuple[Stmt, ...]:
    """Copies of sums through another tile go directly."""
    staged: dict[str, Region] = {}
    for name in _tiles_between(body, roles):
        writes = [s for s in walk.statements(body) if isinstance(s, forms.Copy)]
        sources = [s.src for s in writes if s.dst.buffer.name == name]
        stores = [s.dst.buffer for s in writes if s.src.buffer.name == name]
        if len(sources) != 1 or not _follow(body, name, sources[0].buffer.name):
            continue
        way = (sources[0].buffer.dtype.name, stores[0].dtype.name)
        if way in unit.stores and all(_same_type(body, name, b) for b in stores):
            staged[name] = sources[0]
    if not staged:
        return body
    return tuple(new for stmt in body for new in _direct(stmt, staged))


def _same_type(body: tuple[Stmt, ...], name: str, tensor: Buffer) -> bool:
    """Whether a tile holds what the tensor holds, so that it rounds nothing by itself."""
    tiles = {b.dtype for s in walk.statements(body) for b in walk.writes(s) if b.name == name}
    return tiles == {tensor.dtype}


def _tiles_between(body: tuple[Stmt, ...], roles: Roles) -> Iterator[str]:
    """Tiles that sums are copied to whole, and that only copies to tensors read."""
    found: dict[str, bool] = {}
    for stmt in walk.statements(body):
        used = {b.name for b in (*walk.reads(stmt), *walk.writes(stmt)) if b.scope != "global"}
        for name in used - roles.sums.keys() - roles.operands.keys():
            good = False
            if isinstance(stmt, forms.Copy) and whole(stmt.src) and stmt.src.buffer.name in used:
                into = stmt.dst.buffer.name == name and whole(stmt.dst)
                good = into and stmt.src.buffer.name in roles.sums
                good |= stmt.src.buffer.name == name and stmt.dst.buffer.scope == "global"
            found[name] = found.get(name, True) and good
    return (name for name, good in found.items() if good)


def _follow(body: tuple[Stmt, ...], name: str, sums: str) -> bool:
    """Whether the tile's copies stand in one list with nothing done to the sums in between."""
    touched = [stmt for stmt in body if touches(stmt, name)]
    if len(touched) == 1 and walk.bodies(touched[0]):
        return any(_follow(part, name, sums) for part in walk.bodies(touched[0]))
    inside = [stmt for stmt in body if touches(stmt, name) or touches(stmt, sums)]
    first = next((i for i, stmt in enumerate(inside) if touches(stmt, name)), len(inside))
    last = max((i for i, stmt in enumerate(inside) if touches(stmt, name)), default=-1)
    return all(isinstance(stmt, forms.Copy) for stmt in inside[first : last + 1])


def _direct(stmt: Stmt, staged: dict[str, Region]) -> Iterator[Stmt]:
    if isinstance(stmt, forms.Copy) and stmt.dst.buffer.name in staged:
        return
    if isinstance(stmt, forms.Copy) and stmt.src.buffer.name in staged:
        yield replace(stmt, src=staged[stmt.src.buffer.name])
        return
    yield _inside(stmt, lambda part: tuple(new for s in part for new in _direct(s, staged)))


def _inside(stmt: Stmt, change) -> Stmt:  # type: ignore[no-untyped-def]
    """A statement with the lists inside it changed."""
    if isinstance(stmt, forms.For | forms.Pipelined | forms.While):
        return replace(stmt, body=change(stmt.body))
    if isinstance(stmt, forms.If):
        return replace(stmt, then=change(stmt.then), orelse=change(stmt.orelse))
    return stmt


# ---- fills and stores


def _stores(body: tuple[Stmt, ...], roles: Roles, unit: CubeUnit) -> tuple[Stmt, ...]:
    return tuple(_stored(stmt, roles, unit) for stmt in body)


def _stored(stmt: Stmt, roles: Roles, unit: CubeUnit) -> Stmt:
    said = {
        "span": stmt.span,
        "quote": stmt.quote,
        "comments": stmt.comments,
        "remark": stmt.remark,
    }
    if isinstance(stmt, forms.Fill) and stmt.dst.buffer.name in roles.sums:
        if whole(stmt.dst) and is_number(stmt.value, 0):
            return Begin(dst=stmt.dst, value=stmt.value, **said)  # type: ignore[arg-type]
    if isinstance(stmt, forms.Copy) and stmt.src.buffer.name in roles.sums:
        if _storable(stmt, unit):
            return StoreSums(src=stmt.src, dst=stmt.dst, **said)  # type: ignore[arg-type]
    if isinstance(stmt, forms.AtomicTile) and stmt.op == "add":
        if stmt.src.buffer.name in roles.sums and stmt.dst.buffer.dtype.name in unit.adds:
            if _storable(stmt, unit):
                return StoreSums(src=stmt.src, dst=stmt.dst, adds=True, **said)  # type: ignore[arg-type]
    return _inside(stmt, lambda part: _stores(part, roles, unit))


def _storable(stmt: forms.Copy | forms.AtomicTile, unit: CubeUnit) -> bool:
    """Whether the cube core has a way from these sums to this tensor."""
    way = (stmt.src.buffer.dtype.name, stmt.dst.buffer.dtype.name)
    return stmt.dst.buffer.scope == "global" and whole(stmt.src) and way in unit.stores


# ---- what is done to sums between the last product and the store


@record
class _Finish:
    """max(sums + bias, 0), or a part of it."""

    bias: Region | None
    relu: bool


def _finished(body: tuple[Stmt, ...], name: str, unit: CubeUnit) -> tuple[Stmt, ...]:
    """Parallel loops over finished sums become a bias at their start and ReLU at their store."""
    touched = [place for place, stmt in enumerate(body) if touches(stmt, name)]
    if len(touched) == 1:
        place = touched[0]
        inner = _inside(body[place], lambda part: _finished(part, name, unit))
        return (*body[:place], inner, *body[place + 1 :])
    if not touched or not isinstance(body[touched[0]], Begin):
        return body
    loops = [place for place in touched if isinstance(body[place], forms.Parallel)]
    if not loops or loops != list(range(loops[0], loops[-1] + 1)):
        return body
    after = [body[place] for place in touched if place > loops[-1]]
    before = [body[place] for place in touched[1:] if place < loops[0]]
    if not after or not all(isinstance(stmt, StoreSums) for stmt in after):
        return body
    if any(isinstance(stmt, Begin | StoreSums) for s in before for stmt in walk.statements((s,))):
        return body
    steps = [_finish(body[place], name, body) for place in loops]
    if any(step is None for step in steps):
        return body
    return _with_finish(body, touched[0], loops, [step for step in steps if step], unit)


def _with_finish(
    body: tuple[Stmt, ...], begin: int, loops: list[int], steps: list[_Finish], unit: CubeUnit
) -> tuple[Stmt, ...]:
    biases = [step.bias for step in steps if step.bias is not None]
    relus = [place for place, step in enumerate(steps) if step.relu]
    late = any(step.bias is not None for step in steps[relus[0] + 1 :]) if relus else False
    started = body[begin]
    assert isinstance(started, Begin)
    if len(biases) > 1 or late:
        return body
    if biases and unit.bias.get(biases[0].buffer.dtype.name) != started.sums.dtype.name:
        return body
    new: list[Stmt] = []
    said: list[str] = []
    gone = {region.name for region in _loaded_only_for(biases)} if biases else set()
    for place, stmt in enumerate(body):
        if isinstance(stmt, forms.Copy) and stmt.dst.buffer.name in gone:
            continue
        if place == begin:
            new.append(replace(started, bias=_source(body, biases[0]) if biases else None))
        elif place in loops:
            said += [*stmt.comments, stmt.quote, *_quotes(stmt)]
        elif place > loops[-1] and isinstance(stmt, StoreSums):
            comments = (*[text for text in said if text], *stmt.comments)
            new.append(replace(stmt, relu=bool(relus), comments=comments))
        else:
            new.append(stmt)
    return tuple(new)


def _quotes(stmt: Stmt) -> list[str]:
    """What the author wrote inside a loop."""
    return [text for part in stmt.body for text in (*part.comments, part.quote)]  # type: ignore[attr-defined]


def _finish(stmt: Stmt, name: str, body: tuple[Stmt, ...]) -> _Finish | None:
    """What a loop over all of the sums does to each of them, where it is one of these."""
    if not isinstance(stmt, forms.Parallel) or len(stmt.body) != 1:
        return None
    (store,) = stmt.body
    if not isinstance(store, forms.Store) or store.buffer.name != name:
        return None
    if store.index[-2:] != stmt.loop_vars or stmt.extents != store.buffer.shape[-2:]:
        return None
    if not all(is_number(part, 0) for part in store.index[:-2]):
        return None
    value = _bare(store.value)
    relu = _positive_part(value)
    if relu is not None:
        value = _bare(relu)
    bias = None
    if isinstance(value, Binary) and value.op == "+":
        for one, other in ((value.a, value.b), (value.b, value.a)):
            if _is_element(one, store):
                bias = _bias(_bare(other), stmt.loop_vars[-1], stmt.extents[-1])
                value = one
                break
        if bias is None:
            return None
    if not _is_element(value, store):
        return None
    if bias is not None and bias.buffer.scope != "global" and _source(body, bias) is None:
        return None
    return _Finish(bias, relu is not None)


def _positive_part(value: Expr) -> Expr | None:
    """x of max(x, 0), or of `x if x > 0 else 0`."""
    if isinstance(value, Binary) and value.op == "max":
        for one, other in ((value.a, value.b), (value.b, value.a)):
            if is_number(other, 0):
                return one
    if isinstance(value, Select) and isinstance(value.condition, Compare):
        test = value.condition
        if test.op in (">", ">=") and is_number(test.b, 0) and is_number(value.b, 0):
            if test.a == value.a:
                return value.a
    return None


def _is_element(value: Expr, store: forms.Store) -> bool:
    value = _bare(value)
    return isinstance(value, Load) and value.buffer == store.buffer and value.index == store.index


def _bare(value: Expr) -> Expr:
    """A value without conversions to a wider float type."""
    while isinstance(value, Cast) and value.dtype.is_float and value.a.dtype.is_float:
        if value.dtype.bits < value.a.dtype.bits:
            return value
        value = value.a
    return value


def _bias(value: Expr, column: Var, extent: Expr) -> Region | None:
    """The part of a tensor, or of a tile, of which each column gets one element."""
    if not isinstance(value, Load) or not value.index:
        return None
    *points, last = value.index
    if any(column in walk.variables(part) for part in points):
        return None
    start = _start(last, column)
    if start is None:
        return None
    ranges = tuple(Range(start=part, extent=_one(part), point=True) for part in points)
    along = Range(start=start, extent=extent)
    return Region(buffer=value.buffer, ranges=(*ranges, along), span=value.span)


def _one(like: Expr) -> Expr:
    from tile2c.transpile.ir.expr import const

    return const(1, dtype=like.dtype)


def _start(index: Expr, column: Var) -> Expr | None:
    """s of an index s + column."""
    from tile2c.transpile.ir.expr import const

    if index == column:
        return const(0)
    if isinstance(index, Binary) and index.op == "+":
        for one, other in ((index.a, index.b), (index.b, index.a)):
            if one == column and column not in walk.variables(other):
                return other
    return None


def _loaded_only_for(biases: list[Region]) -> list[Buffer]:
    """Tiles of a bias, which nothing needs once it is read from the tensor."""
    return [bias.buffer for bias in biases if bias.buffer.scope != "global"]


def _source(body: tuple[Stmt, ...], bias: Region) -> Region | None:
    """The part of a tensor that a bias is: itself, or what its tile was loaded from."""
    if bias.buffer.scope == "global":
        return bias
    used = [stmt for stmt in walk.statements(body) if touches(stmt, bias.buffer.name)]
    loads = [stmt for stmt in body if isinstance(stmt, forms.Copy) and stmt in used]
    if len(loads) != 1 or len(used) > 3:  # the copy, the loop and the store in it
        return None
    (load,) = loads
    if load.dst.buffer != bias.buffer or not whole(load.dst) or not whole(bias):
        return None
    source = load.src
    if source.buffer.scope != "global" or source.buffer.dtype != bias.buffer.dtype:
        return None
    return source
