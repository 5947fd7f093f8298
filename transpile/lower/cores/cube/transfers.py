"""What comes to the cube core and what leaves it: loads of tiles to L1, stores of sums from L0C.

reads   `forms.Copy` from tensors, `StoreSums`        writes  steps of MTE2 and FIX
"""

from __future__ import annotations

from collections.abc import Iterable

from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.dtypes import BOOL, INT32, INT64
from tile2c.transpile.ir.expr import (
    Binary,
    Compare,
    Const,
    Expr,
    Logical,
    Unary,
    Var,
    const,
)
from tile2c.transpile.ir.forms import Region
from tile2c.transpile.lower.cores.context import Context, Inside
from tile2c.transpile.lower.cores.copies import (
    joined,
    may_start_before,
    point_guards,
    row_pitch,
)
from tile2c.transpile.lower.cores.cube.forms import Product, StoreSums
from tile2c.transpile.lower.cores.cube.roles import Roles, whole
from tile2c.transpile.lower.cores.cube.tiles import Matrix, lanes, matrix
from tile2c.transpile.lower.cores.exchange import Exchange
from tile2c.transpile.lower.cores.extents import Clip, clip_of, is_min, long_dims
from tile2c.transpile.lower.cores.layouts import long_offset, times
from tile2c.transpile.lower.cores.plan import (
    Argument,
    Barrier,
    Branch,
    CubeCall,
    Local,
    Step,
    TensorRef,
    TileRef,
    Word,
)
from tile2c.transpile.lower.plan import CCall
from tile2c.transpile.targets.cube import CubeUnit

Before = tuple[int, Inside]  # rows of a region that may start in front of its tensor


def whole_units(products: Iterable[Product], unit: CubeUnit) -> dict[str, tuple[int, int]]:
    """In which units rows and columns of sums are computed: pairs of fractals turn as one."""
    found: dict[str, tuple[int, int]] = {}
    for stmt in products:
        one = unit.fractal_rows
        pair = one
        if stmt.a.buffer.dtype.name in unit.squares:
            pair = max(one, lanes(stmt.a.buffer.dtype, unit))
        rows, columns = found.get(stmt.c.buffer.name, (one, one))
        rows = max(rows, pair if stmt.transpose_a else one)
        columns = max(columns, one if stmt.transpose_b else pair)
        found[stmt.c.buffer.name] = (rows, columns)
    return found


def turned_tiles(products: Iterable[Product], unit: CubeUnit) -> frozenset[str]:
    """Operands whose squares turn side by side. Raises InputError for one wanted both ways."""
    found: dict[str, bool] = {}
    for stmt in products:
        for region, turns in ((stmt.a, stmt.transpose_a), (stmt.b, not stmt.transpose_b)):
            name, dtype = region.buffer.name, region.buffer.dtype
            if dtype.name in unit.blocks and found.setdefault(name, turns) != turns:
                raise failure(
                    "T2C572",
                    f"{name} is turned on its way to one operand and not to another: a tile of "
                    f"{dtype} lies in L1 in one of two ways",
                    region.span or stmt.span,
                    help="give each of the two a tile of its own",
                )
    return frozenset(name for name, turns in found.items() if turns)


def part_of_tile(region: Region) -> InputError:
    return failure(
        "T2C574",
        f"this is a part of {region.buffer.name}, but the cube core takes whole tiles",
        region.span,
        help="give each part a tile of its own",
    )


class Transfers:
    """Lowers loads and stores into a context, in extents that stop at the edge of tensors."""

    def __init__(self, context: Context, roles: Roles, unit: CubeUnit) -> None:
        self.context = context
        self.roles = roles
        self.unit = unit
        self.whole_units: dict[str, tuple[int, int]] = {}  # sums -> units of their rows, columns
        self.turned: frozenset[str] = frozenset()  # tiles that are blocks of rows

    def value(self, expr: Expr) -> Expr:
        return self.context.scalars.lower(expr, self.context.facts, self.context.emit)

    def load(self, stmt: forms.Copy) -> None:
        """Global memory to L1, as fractals, zeros in what is missing of them."""
        context, tile = self.context, matrix(stmt.dst.buffer, self.unit)
        if not whole(stmt.dst):
            raise part_of_tile(stmt.dst)
        before, rows, columns, short = self.counts(stmt.dst, stmt.src, tile)
        name = tile.buffer.name
        guards = self.guards(stmt.src, context)
        guard = joined(guards, context)
        if guard is not None:
            short.append(Unary(dtype=BOOL, op="not", a=guard))
        self.clear(tile, short)
        function, pitch = "copy_fractals", tile.tall_expr()
        if name in self.turned:
            function, pitch = "copy_row_blocks", tile.wide_expr()
        elif before is not None:
            function = "copy_some_fractals"
        elif tile.buffer.dtype.name in self.unit.squares:  # pairs of fractals below each other
            function += f"<{lanes(tile.buffer.dtype, self.unit)}>"
        sizes: tuple[Expr, ...] = (rows, columns)
        if before is not None:
            if name in self.turned:
                raise may_start_before(stmt.src, stmt.src.ranges[before[0]].start)
            sizes = (before[1].before, *sizes)
        call: Step = CubeCall(
            unit="MTE2",
            function=function,
            dst=TileRef(tile=name),
            arguments=(
                self.region(stmt.src, name, before),
                *sizes,
                self.pitch(stmt.src, stmt.dst),
                pitch,
            ),
            exchanged=isinstance(stmt.src.buffer, Exchange),
        )
        context.emit(call if guard is None else Branch(condition=guard, then=(call,)))

    def counts(
        self, tile: Region, tensor: Region, shape: Matrix
    ) -> tuple[Before | None, Expr, Expr, list[Expr]]:
        """What lies in front of the tensor, rows and columns inside of it, and conditions under which
        a tile needs zeros."""
        context = self.context
        pairs = dict(zip(long_dims(tile), long_dims(tensor), strict=True))
        found: list[Expr] = []
        short: list[Expr] = []
        before: Before | None = None
        for dim, word in ((shape.row_dim, "rows"), (shape.column_dim, "columns")):
            extent = tile.buffer.shape[dim]
            if dim not in pairs:
                found.append(extent)
                continue
            part, bound = tensor.ranges[pairs[dim]], tensor.buffer.shape[pairs[dim]]
            clip = clip_of(part.start, part.extent, bound, context.facts)
            key = ("tile", tile.buffer.name, dim)
            given = part.extent
            if is_min(given):  # cut by a condition of the author's
                assert isinstance(given, Binary)
                given = context.edge(Clip(const(0), given.a, given.b), *self.edge_names(key, word))
            if not context.facts.non_negative(part.start):
                if word == "columns":
                    raise may_start_before(tensor, part.start)
                clip = Clip(part.start, given, bound)
                before = (pairs[dim], context.inside(clip, *self.edge_names(key, word)))
                found.append(before[1].count)
                extent = shape.tall_expr()  # nothing but zeros is said to be around these rows
                short.append(Compare(dtype=BOOL, op="<", a=found[-1], b=extent))
                continue
            if clip is None:
                found.append(self.value(given))
                if given != part.extent:
                    short.append(Compare(dtype=BOOL, op="<", a=given, b=extent))
                continue
            live = context.edges.of(key)
            clip = Clip(part.start, given, bound)
            count = context.edge(clip, *self.edge_names(key, word))
            found.append(count)
            if live is None or before is not None:
                short.append(Compare(dtype=BOOL, op="<", a=count, b=extent))
        return before, found[0], found[1], short

    def edge_names(self, key: tuple[str, str, int], word: str) -> tuple[str, ...]:
        """rows and columns of the sums, depth of the operands."""
        root = self.context.edges.root(key)
        for name, buffer in self.roles.sums.items():
            ndim = len(buffer.shape)
            for dim, mine in ((ndim - 2, "rows"), (ndim - 1, "columns")):
                if self.context.edges.root(("tile", name, dim)) == root:
                    return (mine, f"{name}_{mine}")
        return ("depth", f"{key[1]}_depth", f"{key[1]}_{word}")

    def clear(self, tile: Matrix, short: list[Expr]) -> None:
        """Zeros all over the tile where a copy leaves some of it out."""
        if not short:
            return
        condition = short[0]
        for other in short[1:]:
            condition = Logical(dtype=BOOL, op="or", a=condition, b=other)
        then = self.zeros(tile)
        self.context.emit(Branch(condition=condition, then=then, prefills=tile.buffer.name))

    def clear_all(self, tile: Matrix) -> None:
        """Zeros all over a tile that copies fill in part."""
        for step in self.zeros(tile):
            self.context.emit(step)

    def zeros(self, tile: Matrix) -> tuple[Step, ...]:
        blocks = const(tile.bytes // self.unit.block_bytes)
        dst = TileRef(tile=tile.buffer.name)
        call = CubeCall(unit="MTE2", function="clear_tile", dst=dst, arguments=(blocks,))
        return call, Barrier(unit="MTE2", remark="the zeros are there before the copy")

    def guards(self, tensor: Region, context: Context) -> list[Expr]:
        return point_guards(tensor, long_dims(tensor), context)

    def region(self, tensor: Region, name: str, before: Before | None = None) -> TensorRef:
        context = self.context
        index = tuple(
            before[1].first if before is not None and before[0] == dim else self.value(part.start)
            for dim, part in enumerate(tensor.ranges)
        )
        offset = context.scalars.global_offset(tensor.buffer.shape, tensor.buffer.strides, index)
        if long_offset(offset):
            local = context.names.local(f"{name}_at")
            context.emit(Local(name=local, dtype=INT64, value=offset))
            offset = Var(dtype=INT64, name=local, kind="temporary")
        return TensorRef(handle=context.scalars.handles[tensor.buffer.name], offset=offset)

    def pitch(self, tensor: Region, tile: Region) -> Expr:
        """Elements from row to row in the tensor, whose columns are neighbours."""
        outer, inner = long_dims(tensor), long_dims(tile)
        last = len(tensor.buffer.shape) - 1
        contiguous = tensor.buffer.strides is None or tensor.buffer.strides[last] == const(1)
        columns = inner and inner[-1] == len(tile.buffer.shape) - 1
        if not contiguous or (columns and outer[-1] != last):
            raise failure(
                "T2C545",
                f"the elements of this tile lie apart in {tensor.buffer.name}: "
                "rows are copied along its last dimension",
                tensor.span,
                help="let the last dimension of the region be the long one",
            )
        if not columns or len(outer) < 2:
            rows = [dim for dim in outer if not columns]
            return row_pitch(tensor, rows[0], self.context) if rows else const(1)
        return row_pitch(tensor, outer[0], self.context)

    def size(self, sums: Region, side: int, word: str) -> Expr:
        """Rows (0) or columns (1) of the sums that are computed, in whole fractals."""
        buffer = sums.buffer
        dim = len(buffer.shape) - 2 + side
        live = self.context.live(("tile", buffer.name, dim), buffer.shape[dim])
        return self.rounded(live, self.whole_units[buffer.name][side], word)

    def rounded(self, count: Expr, unit: int, word: str) -> Expr:
        """`count` in whole fractals, at least one: a local where it is not known."""
        if isinstance(count, Const):
            known = max(1, -(-int(count.value) // unit)) * unit
            return count if known == count.value else const(known)
        name = self.context.names.local(word, f"{word}_whole")
        value = CCall(dtype=INT32, function="whole", args=(count, const(unit)))
        self.context.emit(Local(name=name, dtype=INT32, value=value))
        return Var(dtype=INT32, name=name, kind="temporary")

    def store(self, stmt: StoreSums) -> None:
        """L0C to global memory, nothing outside of the tensor."""
        context, name = self.context, stmt.src.buffer.name
        sums, tensor = stmt.src.buffer, stmt.dst.buffer
        mode = self.unit.stores[sums.dtype.name, tensor.dtype.name]
        shape = matrix(sums, self.unit)
        before, rows, columns, _ = self.counts(stmt.src, stmt.dst, shape)
        guard = joined(self.guards(stmt.dst, context), context)
        tall = self.size(stmt.src, 0, "m")
        src = TileRef(tile=name)
        if before is not None:
            src = TileRef(tile=name, offset=times(before[1].before, self.unit.fractal_rows))
            some = Compare(dtype=BOOL, op=">", a=rows, b=const(0))
            guard = some if guard is None else Logical(dtype=BOOL, op="and", a=guard, b=some)
        arguments: tuple[Argument, ...] = (
            src,
            rows,
            columns,
            tall,
            self.pitch(stmt.dst, stmt.src),
            Word(text=f"QuantMode_t::{mode}"),
        )
        if stmt.relu:
            arguments = (*arguments, Word(text="true"))
        call: Step = CubeCall(
            unit="FIX",
            function="add_sums" if stmt.adds else "store_sums",
            dst=self.region(stmt.dst, name, before),
            arguments=arguments,
            remark="what is below 0 becomes 0" if stmt.relu else "",
        )
        context.emit(call if guard is None else Branch(condition=guard, then=(call,)))
