"""Gives every access to global memory a tile of its own: what V computes lies in local memory.

reads   tile IR, checked        writes  tile IR in which only T.copy touches global tensors
why     a vector unit cannot reach global memory; only the copy units can, and they do not convert.
        Single elements that a scalar expression reads from a global tensor stay: S can.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Binary, Buffer, Compare, Const, Expr, Load, Var, const
from tile2c.transpile.ir.forms import Range, Region, Stmt
from tile2c.transpile.lower.cores.gather import gather_of
from tile2c.transpile.lower.cores.regions import (
    added_up,
    all_of,
    conjuncts,
    less,
    region_like,
    same,
    whole,
    without,
)
from tile2c.transpile.lower.facts import linear
from tile2c.transpile.lower.rewrite import rewrite
from tile2c.transpile.targets.cores import CoresTarget


def stage_globals(launch: forms.Launch, target: CoresTarget, taken: set[str]) -> forms.Launch:
    """The launch with its tiles added. `taken` are names in use; new ones are added to it."""
    staging = _Staging(target, taken)
    body = staging.statements(launch.body)
    return replace(launch, body=body, buffers=(*launch.buffers, *staging.buffers))


# a tensor, the shape under which it is seen, and the index into that
_Place = tuple[str, tuple[Expr, ...], tuple[Expr, ...]]


class _Staging:
    def __init__(self, target: CoresTarget, taken: set[str]) -> None:
        self.target = target
        self.taken = taken
        self.buffers: list[Buffer] = []

    def statements(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(new for stmt in body for new in self.statement(stmt))

    def statement(self, stmt: Stmt) -> Iterator[Stmt]:
        if isinstance(stmt, forms.Copy):
            yield from self.copy(stmt)
        elif isinstance(stmt, forms.AtomicTile):
            yield from self.added(stmt)
        elif isinstance(stmt, forms.Parallel):
            yield from self.parallel(stmt)
        elif isinstance(stmt, forms.Fill) and stmt.dst.buffer.scope == "global":
            yield from self.fill(stmt)
        elif isinstance(stmt, forms.Store) and stmt.buffer.scope == "global":
            yield from self.element(stmt)
        elif isinstance(stmt, forms.For | forms.Pipelined | forms.While):
            yield replace(stmt, body=self.statements(stmt.body))
        elif isinstance(stmt, forms.If):
            then, orelse = self.statements(stmt.then), self.statements(stmt.orelse)
            yield replace(stmt, then=then, orelse=orelse)
        else:
            yield stmt

    # ---- names and tiles

    def tile(self, name: str, shape: tuple[Expr, ...], dtype: DType) -> Buffer:
        """A new tile under a free name."""
        if name in self.taken and not name.endswith("_tile"):
            name += "_out"
        while name in self.taken:
            name += "_other"
        self.taken.add(name)
        tile = Buffer(name=name, scope="fragment", shape=shape, dtype=dtype)
        self.buffers.append(tile)
        return tile

    # ---- copies

    def copy(self, stmt: forms.Copy) -> Iterator[Stmt]:
        """Conversions happen between two tiles; global to global goes through one."""
        source, target = stmt.src.buffer, stmt.dst.buffer
        outside = (source.scope == "global", target.scope == "global")
        if outside == (False, False) or (source.dtype == target.dtype and not all(outside)):
            yield stmt
            return
        shape = tuple(e for e in stmt.dst.shape if not _is_one(e)) or (const(1),)
        if outside[0]:
            name = source.name if all(outside) else target.name
            loaded = self.tile(f"{name}_{_word(source.dtype)}", shape, source.dtype)
            yield replace(stmt, dst=whole(loaded))
            stmt = forms.Copy(src=whole(loaded), dst=stmt.dst, span=stmt.span)
        if outside[1] and stmt.src.buffer.dtype != target.dtype:
            stored = self.tile(f"{source.name}_{_word(target.dtype)}", shape, target.dtype)
            yield replace(stmt, dst=whole(stored))
            stmt = forms.Copy(src=whole(stored), dst=stmt.dst, span=stmt.span)
        yield stmt

    def added(self, stmt: forms.AtomicTile) -> Iterator[Stmt]:
        """What is added to a tensor has its element type."""
        if stmt.src.buffer.dtype != stmt.dst.buffer.dtype or stmt.src.buffer.scope == "global":
            shape = tuple(e for e in stmt.dst.shape if not _is_one(e)) or (const(1),)
            dtype = stmt.dst.buffer.dtype
            tile = self.tile(f"{stmt.src.buffer.name}_{_word(dtype)}", shape, dtype)
            first = forms.Copy(
                src=stmt.src,
                dst=whole(tile),
                span=stmt.span,
                quote=stmt.quote,
                comments=stmt.comments,
            )
            yield from self.copy(first)
            stmt = replace(stmt, src=whole(tile), quote="", comments=())
        yield stmt

    def fill(self, stmt: forms.Fill) -> Iterator[Stmt]:
        buffer = stmt.dst.buffer
        shape = tuple(e for e in stmt.dst.shape if not _is_one(e)) or (const(1),)
        if not all(isinstance(extent, Const) for extent in shape):
            raise failure(
                "T2C528",
                f"this fill of {buffer.name} has a size known only at run time",
                stmt.span,
                help="fill it tile by tile, with constant extents",
            )
        tile = self.tile(f"{buffer.name}_tile", shape, buffer.dtype)
        yield replace(stmt, dst=whole(tile))
        yield forms.Copy(src=whole(tile), dst=stmt.dst, span=stmt.span)

    def element(self, stmt: forms.Store) -> Iterator[Stmt]:
        """One element goes out through a tile of one element: S does not write global memory."""
        ranges = tuple(Range(start=index, extent=const(1), point=True) for index in stmt.index)
        region = Region(buffer=stmt.buffer, ranges=ranges, span=stmt.span)
        value = stmt.value
        if isinstance(value, Load) and value.buffer.scope in ("shared", "fragment"):
            points = tuple(Range(start=i, extent=const(1), point=True) for i in value.index)
            source = Region(buffer=value.buffer, ranges=points, span=value.span)
            yield forms.Copy(
                src=source,
                dst=region,
                span=stmt.span,
                quote=stmt.quote,
                comments=stmt.comments,
                remark=stmt.remark,
            )
            return
        tile = self.tile(f"{stmt.buffer.name}_element", (const(1),), stmt.buffer.dtype)
        yield replace(stmt, buffer=tile, index=(const(0),))
        yield forms.Copy(src=whole(tile), dst=region, span=stmt.span)

    # ---- parallel loops

    def parallel(self, stmt: forms.Parallel) -> Iterator[Stmt]:
        """Tiles that the loop reads arrive before it, tiles that it writes leave after it."""
        gather = gather_of(stmt)
        if gather is not None:
            yield gather
            return
        work = _ParallelStaging(self, stmt)
        body = work.body(stmt.body, ())
        loads, stores = work.loads, work.stores
        for number, copy in enumerate(loads):
            yield replace(copy, comments=stmt.comments, quote=stmt.quote) if not number else copy
        yield replace(
            stmt,
            body=body,
            comments=() if loads else stmt.comments,
            quote="" if loads else stmt.quote,
        )
        yield from stores


class _ParallelStaging:
    """The copies around one parallel loop, and its body without global accesses."""

    def __init__(self, staging: _Staging, loop: forms.Parallel) -> None:
        self.staging = staging
        self.loop = loop
        self.extents = dict(zip((v.name for v in loop.loop_vars), loop.extents, strict=True))
        self.loads: list[forms.Copy] = []
        self.stores: list[forms.Copy | forms.AtomicTile] = []
        self.current: dict[_Place, Load] = {}
        self.read: set[_Place] = set()
        self.written: set[_Place] = set()
        self.names: dict[str, Expr] = {}  # indices that the author gave a name

    def body(self, body: tuple[Stmt, ...], guards: tuple[Expr, ...]) -> tuple[Stmt, ...]:
        return tuple(new for stmt in body for new in self.statement(stmt, guards))

    def statement(self, stmt: Stmt, guards: tuple[Expr, ...]) -> Iterator[Stmt]:
        if isinstance(stmt, forms.If):
            condition = self.local(stmt.condition)
            if self._writes_global(stmt):
                if stmt.orelse:
                    raise self._refuse_guard(stmt)
                inner = self.body(stmt.then, (*guards, condition))
                yield from inner
                return
            then, orelse = self.body(stmt.then, guards), self.body(stmt.orelse, guards)
            yield replace(stmt, condition=condition, then=then, orelse=orelse)
        elif isinstance(stmt, forms.For):
            if self._uses_global(stmt, stmt.var):
                raise failure(
                    "T2C529",
                    f"{stmt.var.name} runs inside T.Parallel and indexes a global tensor, "
                    f"which {self.staging.target.name} copies tile by tile",
                    stmt.span,
                    help="put the serial loop outside and copy one tile of it at a time",
                )
            start, stop = self.local(stmt.start), self.local(stmt.stop)
            yield replace(stmt, start=start, stop=stop, body=self.body(stmt.body, guards))
        elif isinstance(stmt, forms.Store) and stmt.buffer.scope == "global":
            yield self.store(stmt, guards)
        elif isinstance(stmt, forms.Atomic) and stmt.buffer.scope == "global":
            yield self.added(stmt, guards)
        elif isinstance(stmt, forms.Store):
            if guards:
                guarded = self._inner_store(stmt)
                yield forms.If(condition=all_of(guards), then=(guarded,), span=stmt.span)
            else:
                yield self._inner_store(stmt)
        elif isinstance(stmt, forms.Let) and self._is_index(stmt):
            self.names[stmt.var.name] = self.local(stmt.value)
        elif isinstance(stmt, forms.Let):
            yield replace(stmt, value=self.local(stmt.value))
        else:
            yield stmt

    def _inner_store(self, stmt: forms.Store) -> forms.Store:
        index = tuple(self.local(part) for part in stmt.index)
        return replace(stmt, index=index, value=self.local(stmt.value))

    def local(self, expr: Expr) -> Expr:
        """The expression with loads from global tensors turned into loads from tiles."""
        return rewrite(expr, self._load)

    def _load(self, expr: Expr) -> Expr | None:
        if isinstance(expr, Var):
            return self.names.get(expr.name)
        if not isinstance(expr, Load):
            return None
        index = tuple(self.local(part) for part in expr.index)
        if index != expr.index:
            expr = replace(expr, index=index)
        if expr.buffer.scope != "global":
            return expr
        if not any(var.name in self.extents for i in expr.index for var in walk.variables(i)):
            return expr  # one element for the whole tile: S reads it
        key = (expr.buffer.name, expr.buffer.shape, expr.index)
        self.read.add(key)
        self._check_alone(key, self.written, expr)
        if key not in self.current:
            name = f"{expr.buffer.name}_tile"
            region, tile, index = self.region(expr.buffer, expr.index, name, expr)
            self.loads.append(forms.Copy(src=region, dst=whole(tile), span=expr.span))
            self.current[key] = Load(dtype=expr.dtype, buffer=tile, index=index, span=expr.span)
        return self.current[key]

    def store(self, stmt: forms.Store, guards: tuple[Expr, ...]) -> Stmt:
        value = self.local(stmt.value)
        stmt = replace(stmt, index=tuple(self.local(part) for part in stmt.index))
        name = f"{stmt.buffer.name}_tile"
        if name in self.staging.taken:  # the loop reads this tensor too
            name = f"{stmt.buffer.name}_result"
        points = [str(part.value) for part in stmt.index if isinstance(part, Const)]
        if name in self.staging.taken and points:
            name = "_".join((stmt.buffer.name, "at", *points))
        region, tile, index = self.region(stmt.buffer, stmt.index, name, stmt)
        region = self._guarded(region, stmt, guards)
        self.stores.append(forms.Copy(src=region_like(tile, region), dst=region, span=stmt.span))
        here = Load(dtype=stmt.buffer.dtype, buffer=tile, index=index, span=stmt.span)
        key = (stmt.buffer.name, stmt.buffer.shape, stmt.index)
        self.written.add(key)
        self._check_alone(key, self.read, stmt)
        if not guards:
            self.current[key] = here
        return replace(stmt, buffer=tile, index=index, value=value)

    def added(self, stmt: forms.Atomic, guards: tuple[Expr, ...]) -> Stmt:
        """An addition by every iteration: all of them into a tile, which is added as a whole."""
        index = tuple(self.local(part) for part in stmt.index)
        value = self.local(stmt.value)
        plain = forms.Store(
            buffer=stmt.buffer,
            index=index,
            value=value,
            span=stmt.span,
            quote=stmt.quote,
            comments=stmt.comments,
            remark=stmt.remark,
        )
        name = f"{stmt.buffer.name}_added"
        region, tile, inner = self.region(stmt.buffer, index, name, stmt)
        region = self._guarded(region, plain, guards)
        self.stores.append(
            forms.AtomicTile(op=stmt.op, src=region_like(tile, region), dst=region, span=stmt.span)
        )
        key = (stmt.buffer.name, stmt.buffer.shape, index)
        self.written.add(key)
        self._check_alone(key, self.read, stmt)
        return replace(plain, buffer=tile, index=inner)

    def _check_alone(self, key: _Place, others: set[_Place], where: Expr | Stmt) -> None:
        """Raises InputError where the loop reads and writes a tensor at different places."""
        if any(other[0] == key[0] and other != key for other in others):
            raise failure(
                "T2C530",
                f"this loop writes {key[0]} and also reads it at another index",
                where.span,
                help="read it into a tile with T.copy before the loop",
            )

    def _is_index(self, stmt: forms.Let) -> bool:
        """Whether a temporary is index arithmetic, which belongs into the indices it is used in."""
        return stmt.var.dtype.is_integer and not any(walk.loads(stmt.value))

    def region(
        self, buffer: Buffer, index: tuple[Expr, ...], name: str, where: Expr | Stmt
    ) -> tuple[Region, Buffer, tuple[Expr, ...]]:
        """What the whole loop touches of `buffer`, a tile for it, and the index into that."""
        ranges: list[Range] = []
        shape: list[Expr] = []
        inner: list[Expr] = []
        for part in index:
            own = [var for var in walk.variables(part) if var.name in self.extents]
            if not own:
                ranges.append(Range(start=part, extent=const(1), point=True))
                continue
            form = dict(linear(part).terms)
            if len(own) != 1 or form.get(own[0]) != 1 or own[0] in inner:
                raise failure(
                    "T2C531",
                    f"this index of {buffer.name} is not one loop variable plus a start, "
                    f"so no copy of {self.staging.target.name} brings the whole tile",
                    part.span or where.span,
                    help="index each dimension by its own T.Parallel variable, or load with T.copy",
                )
            var = own[0]
            extent = self.extents[var.name]
            if not isinstance(extent, Const):
                raise failure(
                    "T2C532",
                    f"{var.name} runs over a size known only at run time, "
                    "but local memory holds tiles of constant size",
                    extent.span or self.loop.span,
                    help=f"walk over it in a serial loop of tiles, with T.Parallel inside: "
                    f"for {var.name}o in T.serial(T.ceildiv(size, 1024))",
                )
            ranges.append(Range(start=without(part, var), extent=extent))
            shape.append(extent)
            inner.append(var)
        region = Region(buffer=buffer, ranges=tuple(ranges), span=where.span)
        tile = self.staging.tile(name, tuple(shape) or (const(1),), buffer.dtype)
        return region, tile, tuple(inner) or (const(0),)

    # ---- guards around stores

    def _guarded(self, region: Region, stmt: forms.Store, guards: tuple[Expr, ...]) -> Region:
        """The region cut down to where `guards` hold; one that repeats the bound cuts nothing."""
        for guard in conjuncts(guards):
            cut = self._cut(region, stmt, guard)
            if cut is None:
                raise self._refuse_guard(stmt)
            region = cut
        return region

    def _cut(self, region: Region, stmt: forms.Store, guard: Expr) -> Region | None:
        if not isinstance(guard, Compare) or not guard.a.dtype.is_integer:
            return None
        if guard.op in (">", ">="):
            guard = replace(guard, op="<" if guard.op == ">" else "<=", a=guard.b, b=guard.a)
        if guard.op not in ("<", "<="):
            return None
        stop: Expr = guard.b if guard.op == "<" else added_up(guard.b, const(1))
        bounded = [var for var in walk.variables(guard.a) if var.name in self.extents]
        if len(bounded) != 1 or dict(linear(guard.a).terms).get(bounded[0]) != 1:
            return None
        for number, (part, index) in enumerate(zip(region.ranges, stmt.index, strict=True)):
            if bounded[0] not in walk.variables(index):
                continue
            if same(guard.a, index) and same(stop, stmt.buffer.shape[number]):
                return region
            room = less(stop, without(guard.a, bounded[0]))
            extent = Binary(dtype=room.dtype, op="min", a=part.extent, b=room)
            ranges = list(region.ranges)
            ranges[number] = replace(part, extent=extent)
            return replace(region, ranges=tuple(ranges))
        return None

    def _refuse_guard(self, stmt: Stmt) -> Exception:
        return failure(
            "T2C533",
            "this condition around a store to a global tensor does not bound its index",
            stmt.span,
            help="guard with `index < bound`, or store T.if_then_else(condition, new, old)",
        )

    def _writes_global(self, stmt: Stmt) -> bool:
        return any(
            isinstance(inner, forms.Store | forms.Atomic) and inner.buffer.scope == "global"
            for body in walk.bodies(stmt)
            for inner in walk.statements(body)
        )

    def _uses_global(self, stmt: forms.For, var: Var) -> bool:
        for inner in walk.statements(stmt.body):
            indices = [
                index
                for expr in walk.expressions(inner)
                for load in walk.loads(expr)
                if load.buffer.scope == "global"
                for index in load.index
            ]
            if isinstance(inner, forms.Store) and inner.buffer.scope == "global":
                indices += inner.index
            if any(var == used for index in indices for used in walk.variables(index)):
                return True
        return False


def _is_one(extent: Expr) -> bool:
    return isinstance(extent, Const) and extent.value == 1


def _word(dtype: DType) -> str:
    return {"float16": "half", "float32": "float", "bfloat16": "bf16"}.get(dtype.name, dtype.name)
