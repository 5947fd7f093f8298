"""Plans the cube core's part of a kernel, which may be all of it.

reads   tile IR, folded        writes  `plan.CoresPlan`
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.diagnostics import Note
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import BOOL, DTYPES, INT32, DType
from tile2c.transpile.ir.expr import Compare, Const, Expr, Select, const
from tile2c.transpile.ir.forms import Stmt
from tile2c.transpile.lower.cores.context import Context
from tile2c.transpile.lower.cores.cube.forms import Begin, Product
from tile2c.transpile.lower.cores.cube.orders import order_tensors
from tile2c.transpile.lower.cores.cube.queues import place_queues
from tile2c.transpile.lower.cores.cube.roles import Roles
from tile2c.transpile.lower.cores.cube.statements import CubeLowering, PartTiles
from tile2c.transpile.lower.cores.cube.tiles import matrix, parts_of, split_depth, up
from tile2c.transpile.lower.cores.cube.transfers import turned_tiles, whole_units
from tile2c.transpile.lower.cores.exchange import Exchange
from tile2c.transpile.lower.cores.extents import find_edges
from tile2c.transpile.lower.cores.grid import grid_of
from tile2c.transpile.lower.cores.layouts import layouts
from tile2c.transpile.lower.cores.names import Names
from tile2c.transpile.lower.cores.plan import (
    Choice,
    CoresPlan,
    CubeCall,
    Loop,
    Step,
    Tile,
    TileRef,
    bodies,
)
from tile2c.transpile.lower.cores.planner import (
    launch_facts,
    named_constants,
    names_outside,
    parameters,
    taken_names,
    tensor_handle,
)
from tile2c.transpile.lower.cores.scalars import Scalars
from tile2c.transpile.lower.cores.scoped_names import scoped_names
from tile2c.transpile.lower.cores.tiles import Tiles
from tile2c.transpile.lower.cores.verify import verify
from tile2c.transpile.targets.cores import CoresTarget
from tile2c.transpile.targets.cube import CubeUnit


class CubePlanner:
    """Plans what the cube core does: `body` is its part of the launch, folded."""

    def __init__(
        self,
        function: forms.Function,
        body: tuple[Stmt, ...],
        roles: Roles,
        target: CoresTarget,
    ) -> None:
        assert target.cube is not None
        self.function = function
        self.target = target
        self.unit = target.cube
        self.names = Names(taken_names(function, target))
        launch = function.launches[0]
        self.facts = launch_facts(function, launch)
        self.roles = roles
        used = {*roles.sums, *roles.operands}
        buffers = tuple(b for b in launch.buffers if b.name in used)
        self.launch = replace(launch, body=body, buffers=buffers)
        for stmt in self._gemms():
            _check_types(stmt, self.unit)
        self.context = self._context()
        for part in launch.body:  # the unit that stores sums does not wait for S either
            with self.context.scalars.stores_of(part):
                pass
        self.grid = grid_of(self.launch, self.context, self.unit.cores)
        self.lowering = self._lowering()
        self.lowering.lower(self.launch.body)
        raw = self.context.body(self.context.scopes[0])
        self.repeats = self.grid.persistent or _has_loop(raw)
        self.rounds = _load_depths(raw)
        self.tiles = self._tiles()
        queued = [tile.name for tile in self.tiles if tile.name not in self._parts()]
        handles = self.context.scalars.handles
        exchanged = frozenset(
            handles[param.name] for param in function.params if isinstance(param.tensor, Exchange)
        )
        raw = order_tensors(raw, exchanged)
        self.body = place_queues(raw, queued, {b.name: b for b in self.launch.buffers})

    def _context(self) -> Context:
        tiles = tuple(b for b in self.launch.buffers)
        sizes = tuple(sorted({b.dtype.bytes for b in tiles})) or (4,)
        shapes = layouts(tiles, self.target, sizes)
        known = frozenset(var.name for var in (*self.launch.blocks, *self.function.sizes))
        known |= {param.name for param in self.function.params}
        edges = find_edges(self.launch.body, shapes, self.facts, known, gaps=False)
        handles = {
            param.name: tensor_handle(param.name, self.target, self.names)
            for param in self.function.params
            if param.tensor is not None
        }
        return Context(
            target=self.target,
            layouts=shapes,
            edges=edges,
            tiles=Tiles(self.target, shapes, self.names),
            names=self.names,
            scalars=Scalars(
                shapes,
                self.names,
                handles,
                self.target.words,
            ),
            facts=self.facts,
            element_bytes=sizes,
        )

    def _lowering(self) -> CubeLowering:
        kinds = [gemm.a.buffer.dtype for gemm in self._gemms()]
        parts = PartTiles(self.names.fresh("left"), self.names.fresh("right"), kinds[-1])
        lowering = CubeLowering(self.context, self.roles, self.unit, parts)
        lowering.whole_units = whole_units(self._gemms(), self.unit)
        lowering.turned = turned_tiles(self._gemms(), self.unit)
        for stmt in walk.statements(self.launch.body):
            if isinstance(stmt, Begin) and stmt.bias is not None:
                name = stmt.bias.buffer.name
                pair = (self.names.fresh(f"{name}_l1"), self.names.fresh(f"{name}_row"))
                lowering.biases.setdefault(stmt.sums.name, pair)
        return lowering

    def _parts(self) -> tuple[str, str]:
        return self.lowering.parts.left, self.lowering.parts.right

    # ---- memory

    def _tiles(self) -> tuple[Tile, ...]:
        """Every tile with its place and copies. Raises InputError where they do not fit."""
        found = [*self._operands(), *self._biases(), *self._part_tiles(), *self._sums()]
        return tuple(found)

    def _operands(self) -> list[Tile]:
        """In L1: two copies where both fit, so that the next round is loaded during this one."""
        found = []
        for name, buffer in self.roles.operands.items():
            position = "A1" if name in self.roles.left else "B1"
            shape = matrix(buffer, self.unit)
            tile = Tile(
                name=name,
                dtype=buffer.dtype,
                rows=shape.rows,
                columns=shape.columns,
                pitch=shape.wide if name in self.lowering.turned else shape.tall,
                bytes=up(shape.bytes, 512),
                place="in",
                position=position,
                shape=_shape(buffer.shape),
            )
            found.append(tile)
        return self._doubled(found, self.unit.l1_bytes - self._bias_bytes(), "L1")

    def _doubled(self, tiles: list[Tile], room: int, memory: str) -> list[Tile]:
        """The tiles with a second copy of as many of them as there is room and event ids for."""
        used = sum(tile.bytes for tile in tiles)
        if used > room:
            raise _too_large(self.function.name, tiles, room, memory, self.launch)
        copies = len(tiles)
        if copies > self._most():
            raise failure(
                "T2C556",
                f"{copies} tiles of {self.function.name} lie in {memory}, but there are events for "
                f"{self._most()} of them",
                self.launch.span,
                help="load operands that are used one after the other into one tile",
            )
        twice: set[str] = set()
        # Those that innermost loops load first: they are waited for most often.
        for tile in sorted(tiles, key=lambda tile: -self.rounds.get(tile.name, 0)):
            if self.repeats and used + tile.bytes <= room and copies < self._most():
                used, copies = used + tile.bytes, copies + 1
                twice.add(tile.name)
        return [replace(tile, depth=2 if tile.name in twice else 1) for tile in tiles]

    def _most(self) -> int:
        return self.unit.queue_buffers - len(self.lowering.biases)

    def _bias_bytes(self) -> int:
        return sum(tile.bytes for tile in self._biases() if tile.position == "C1")

    def _biases(self) -> list[Tile]:
        found: list[Tile] = []
        for stmt in walk.statements(self.launch.body):
            if not isinstance(stmt, Begin) or stmt.bias is None:
                continue
            count = stmt.sums.shape[-1]
            assert isinstance(count, Const)
            dtype, sums = stmt.bias.buffer.dtype, stmt.sums.dtype
            in_l1, in_table = self.lowering.biases[stmt.sums.name]
            columns = int(count.value)
            shape = f"[{_word(count)}]"
            common = {"rows": 1, "columns": columns, "pitch": columns, "shape": shape}
            row = up(columns * dtype.bytes, 64)
            first = Tile(name=in_l1, dtype=dtype, bytes=row, place="in", position="C1", **common)  # type: ignore[arg-type]
            table = up(columns, 64 // dtype.bytes) * sums.bytes
            if table > self.unit.bias_bytes:
                raise _too_large(
                    self.function.name,
                    [Tile(name=in_table, dtype=sums, bytes=table, **common)],  # type: ignore[arg-type]
                    self.unit.bias_bytes,
                    "the bias table",
                    self.launch,
                )
            second = Tile(
                name=in_table,
                dtype=sums,
                bytes=table,
                place="in",
                position="C2",
                **common,  # type: ignore[arg-type]
            )
            if all(tile.name != in_l1 for tile in found):
                found += [first, second]
        return found

    def _part_tiles(self) -> list[Tile]:
        """L0A and L0B, both halved if they can: one part is loaded while the other is multiplied."""
        left, right = self._parts()
        sizes = {left: 0, right: 0}
        dtypes: dict[str, DType] = {}
        copies = 2
        for gemm in self._gemms():
            parts = split_depth(gemm, self.unit)
            copies = min(copies, parts.copies)
            sizes[left] = max(sizes[left], parts.left_bytes)
            sizes[right] = max(sizes[right], parts.right_bytes)
            dtypes[left] = dtypes[right] = gemm.a.buffer.dtype
        return [
            Tile(
                name=name,
                dtype=dtypes[name],
                rows=1,
                columns=sizes[name] // dtypes[name].bytes,
                pitch=0,
                bytes=up(sizes[name], 512),
                place="in",
                position=position,
                depth=copies,
                purpose=purpose,
            )
            for name, position, purpose in (
                (left, "A2", "what the cube takes from the left"),
                (right, "B2", "what it takes from the right"),
            )
        ]

    def _gemms(self) -> list[Product]:
        return [stmt for stmt in walk.statements(self.launch.body) if isinstance(stmt, Product)]

    def _sums(self) -> list[Tile]:
        sizes: dict[str, int] = {}
        for gemm in self._gemms():
            m, n, _, _ = parts_of(gemm, self.unit)
            name = gemm.c.buffer.name
            sizes[name] = max(sizes.get(name, 0), m * n * gemm.c.buffer.dtype.bytes)
        found = []
        for name, buffer in self.roles.sums.items():
            shape = matrix(buffer, self.unit)
            tile = Tile(
                name=name,
                dtype=buffer.dtype,
                rows=shape.rows,
                columns=shape.columns,
                pitch=shape.tall,
                bytes=up(sizes[name], 1024),
                place="out",
                position="CO1",
                shape=_shape(buffer.shape),
            )
            found.append(tile)
        return self._doubled(found, self.unit.l0c_bytes, "L0C")

    # ---- the plan

    def plan(self) -> CoresPlan:
        tiles = {tile.name: tile for tile in self.tiles}
        grid_names = {local.name for local in (*self.grid.sizes, *self.grid.locals)}
        outside = {*tiles, *grid_names, self.grid.tile.name, *names_outside(self.function)}
        body = scoped_names(self.body, frozenset(outside))
        blocks = self.grid.blocks
        limit = const(self.unit.cores)
        few = Compare(dtype=BOOL, op="<", a=blocks, b=limit)
        grid: Expr = Select(dtype=INT32, condition=few, a=blocks, b=limit)
        quote = (self.launch.quote,) if self.launch.quote else ()
        plan = CoresPlan(
            name=self.function.name,
            summary=self.function.summary,
            comments=self.function.docstring,
            constants=named_constants(self.function, body, blocks, self.grid.locals),
            params=parameters(self.function, self.function.launches[0], self.context.scalars),
            blocks=blocks,
            last_block=self.grid.last,
            tile=self.grid.tile,
            persistent=self.grid.persistent,
            extents=self.grid.extents,
            grid=grid if self.grid.persistent else blocks,
            grid_locals=self.grid.sizes,
            block_locals=self.grid.locals,
            launch_comments=(*self.launch.comments, *quote),
            tiles=tuple(tiles.values()),
            setup=(),
            body=body,
            local_bytes=0,
            choices=self._choices(),
            sizes=tuple(size.name for size in self.function.sizes),
            side="cube",
            cores=self.unit.cores,
            memory=self._memory(),
        )
        verify(plan, self.target)
        return plan

    def _memory(self) -> str:
        room = {
            "L1": (("A1", "B1", "C1"), self.unit.l1_bytes),
            "L0A": (("A2",), self.unit.l0_bytes),
            "L0B": (("B2",), self.unit.l0_bytes),
            "L0C": (("CO1",), self.unit.l0c_bytes),
        }
        parts = []
        for memory, (positions, size) in room.items():
            used = sum(t.bytes * t.depth for t in self.tiles if t.position in positions)
            parts.append(f"{memory} {used} of {size}")
        return f"{', '.join(parts)} bytes"

    def _choices(self) -> tuple[Choice, ...]:
        single = [tile.name for tile in self.tiles if tile.depth == 1]
        value = "2" if not single else f"2, but 1 of {', '.join(single)}"
        if not self.repeats:
            value = "1"
        return (
            Choice(name="cores", value="cube", reason="only products, and what stores do to sums"),
            Choice(
                name="blocks",
                value="each core takes block after block" if self.grid.persistent else "one a core",
                reason=f"{self.unit.cores} cube cores",
            ),
            Choice(
                name="copies of queued tiles",
                value=value,
                reason="loads, products and stores of different rounds overlap",
            ),
        )


def _check_types(stmt: Product, unit: CubeUnit) -> None:
    a, b, c = (region.buffer for region in (stmt.a, stmt.b, stmt.c))
    wanted = unit.products.get(a.dtype.name)
    if a.dtype == b.dtype and wanted == c.dtype.name:
        return
    known = ", ".join(f"{one} into {sums}" for one, sums in unit.products.items())
    raise failure(
        "T2C513",
        f"the cube multiplies {known}, not {a.dtype} and {b.dtype} into {c.dtype}",
        stmt.span,
        notes=tuple(Note(f"{x.name} is {x.dtype}", x.span) for x in (a, b, c)),
        help=f"let the sums be {wanted or DTYPES['float32']}",
    )


def _too_large(
    name: str, tiles: list[Tile], room: int, memory: str, launch: forms.Launch
) -> Exception:
    used = sum(tile.bytes for tile in tiles)
    notes = tuple(Note(f"{tile.name} takes {tile.bytes} bytes") for tile in tiles[:4])
    return failure(
        "T2C556",
        f"the tiles of {name} take {used} bytes of {memory}, which has {room}",
        launch.span,
        notes=notes,
        help="make the blocks smaller",
    )


def _load_depths(steps: tuple[Step, ...], depth: int = 0) -> dict[str, int]:
    """In how many loops each tile is loaded from a tensor of the author's."""
    found: dict[str, int] = {}
    for step in steps:
        inner = depth + isinstance(step, Loop)
        for part in bodies(step):
            found |= _load_depths(part, inner)
        if isinstance(step, CubeCall) and step.unit == "MTE2" and isinstance(step.dst, TileRef):
            if not step.exchanged:
                found[step.dst.tile] = depth
    return found


def _has_loop(steps: tuple[Step, ...]) -> bool:
    return any(
        isinstance(step, Loop) or any(_has_loop(part) for part in bodies(step)) for step in steps
    )


def _shape(extents: tuple[Expr, ...]) -> str:
    return f"[{', '.join(_word(extent) for extent in extents)}]"


def _word(extent: Expr) -> str:
    name = getattr(extent, "name", None)
    return str(name) if name else str(getattr(extent, "value", extent))
