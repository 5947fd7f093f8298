"""Plans a kernel that multiplies: on the cube cores alone, or on them and the vector cores beside.

reads   tile IR, checked        writes  `plan.CoresPlan`
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Compare, Const, Var, const
from tile2c.transpile.ir.forms import Stmt
from tile2c.transpile.lower.cores.cube.begin import begin_sums
from tile2c.transpile.lower.cores.cube.fold import fold
from tile2c.transpile.lower.cores.cube.forms import Begin, StoreSums
from tile2c.transpile.lower.cores.cube.gathers import find_gathers
from tile2c.transpile.lower.cores.cube.planner import CubePlanner
from tile2c.transpile.lower.cores.cube.roles import Roles, find_roles, is_load
from tile2c.transpile.lower.cores.cube.sides import CORE, Sides, divide, finished_sums
from tile2c.transpile.lower.cores.exchange import Exchange
from tile2c.transpile.lower.cores.extents import find_edges
from tile2c.transpile.lower.cores.layouts import layouts
from tile2c.transpile.lower.cores.names import Names
from tile2c.transpile.lower.cores.packed import unpack_loops
from tile2c.transpile.lower.cores.plan import (
    Choice,
    CoresPlan,
    CrossFlag,
    Local,
    Mix,
    Step,
    TensorParam,
    WorkTensor,
)
from tile2c.transpile.lower.cores.planner import Attempt, launch_facts, taken_names, too_large
from tile2c.transpile.lower.cores.split_tiles import Cut, cuts, split, stores_all
from tile2c.transpile.lower.cores.stage_globals import stage_globals
from tile2c.transpile.lower.cores.strip_loops import strip_loops
from tile2c.transpile.lower.cores.versions import split_versions
from tile2c.transpile.lower.plan import CCall
from tile2c.transpile.targets.cores import CoresTarget
from tile2c.transpile.targets.cube import CubeUnit

_FRACTAL = 16  # rows and columns of strips come in whole fractals
_ALIGN = 512  # bytes at which parts of the workspace start: what global memory moves at its best


def make_product_plan(function: forms.Function, target: CoresTarget) -> CoresPlan:
    """The plan of a function whose launch multiplies. Raises InputError for what has none.

    Tiles that do not fit are taken in strips of rows or columns that products keep apart.
    """
    assert target.cube is not None
    try:
        return _whole(function, target, target.cube)
    except InputError as error:
        if error.diagnostic.code != "T2C556":
            raise
        for strips, cut in _in_strips(function, target):
            try:
                plan = _whole(strips, target, target.cube)
            except InputError:
                continue
            what = "rows" if cut.rows else "columns"
            choice = Choice(
                name="strips",
                value=f"{cut.size} of {cut.extent} {what}",
                reason="the whole tiles do not fit",
            )
            return replace(plan, choices=(*plan.choices, choice))
        raise


def _whole(function: forms.Function, target: CoresTarget, unit: CubeUnit) -> CoresPlan:
    launch = function.launches[0]
    roles = find_roles(launch.body)
    body = find_gathers(fold(launch.body, roles, unit), roles)
    finished = finished_sums(body, roles)
    body = begin_sums(body, finished, launch_facts(function, launch))
    if _cube_alone(body, roles) and finished == roles.sums.keys():
        return CubePlanner(function, body, roles, target).plan()
    sides = divide(launch, body, roles, finished, unit.cores)
    return _mix(function, sides, roles, target, unit)


def _in_strips(
    function: forms.Function, target: CoresTarget
) -> Iterator[tuple[forms.Function, Cut]]:
    """The function with its tiles cut down, the gentlest ways first."""
    launch = function.launches[0]
    tiles = tuple(b for b in launch.buffers if b.scope in ("shared", "fragment"))
    shapes = layouts(tiles, target, (min(b.dtype.bytes for b in tiles),))
    facts = launch_facts(function, launch)
    known = frozenset(var.name for var in (*launch.blocks, *function.sizes))
    known |= {param.name for param in function.params}
    edges = find_edges(launch.body, shapes, facts, known, gaps=False)
    for cut in cuts(launch, shapes, edges):
        if cut.size % _FRACTAL == 0:
            names = Names(taken_names(function, target))
            smaller = split(launch, cut, shapes, edges, names)
            yield replace(function, launches=(smaller,)), cut


def _cube_alone(body: tuple[Stmt, ...], roles: Roles) -> bool:
    """Whether every statement is one that the cube core does."""
    used = {*roles.sums, *roles.operands}
    for stmt in walk.statements(body):
        if isinstance(stmt, StoreSums | Begin | forms.Gemm) or walk.bodies(stmt):
            if not isinstance(stmt, forms.Parallel):
                continue
        if isinstance(stmt, forms.Copy) and is_load(stmt):
            if stmt.dst.buffer.name in roles.operands:
                continue
        tiles = {b for b in (*walk.reads(stmt), *walk.writes(stmt)) if b.scope != "variable"}
        if any(b.name in used or b.scope != "global" for b in tiles):
            return False
        if isinstance(stmt, forms.Parallel | forms.Fill | forms.Copy):
            return False
    return True


# ---- on both kinds of cores


def _mix(
    function: forms.Function, sides: Sides, roles: Roles, target: CoresTarget, unit: CubeUnit
) -> CoresPlan:
    if 2 * len(sides.exchanges) > unit.cross_flags:
        raise failure(
            "T2C578",
            f"{len(sides.exchanges)} tiles pass between the cube core and the vector cores, each "
            f"with two flags, but there are {unit.cross_flags}",
            function.launches[0].span,
            help="let fewer tiles be both multiplied and computed with",
        )
    _check_tensors(sides)
    params = [forms.Param(name=x.name, tensor=x) for x in sides.exchanges]
    core = Var(dtype=INT32, name=CORE, kind="block")
    known = (
        Compare(dtype=BOOL, op=">=", a=core, b=const(0)),
        Compare(dtype=BOOL, op="<", a=core, b=const(unit.cores)),
    )
    function = replace(
        function,
        params=(*function.params, *params),
        assumptions=(*function.assumptions, *known),
    )
    cube = CubePlanner(function, sides.cube, roles, target).plan()
    vector, cores = _vector_side(function, sides, target, unit)
    names = {exchange.name for exchange in sides.exchanges}
    handles = {p.name: p.handle for p in vector.params if isinstance(p, TensorParam)}
    starts, ends = _flags(sides)
    memory = f"UB {vector.local_bytes} of {target.local_bytes}, {cube.memory}"
    return replace(
        vector,
        params=tuple(p for p in _params(vector, cube) if p.name not in names),
        constants=tuple({c.name: c for c in (*cube.constants, *vector.constants)}.values()),
        setup=(*vector.setup, *starts[1]),
        cores=unit.cores,
        memory=memory,
        choices=(
            Choice(
                name="cores",
                value=f"cube cores with {cores} vector cores each",
                reason="the vector unit computes with sums, or makes operands",
            ),
            *vector.choices,
        ),
        mix=Mix(
            cube=replace(cube, setup=(*cube.setup, *starts[0])),
            vector_cores=cores,
            workspace=_workspace(sides, handles),
            flags=tuple(flag for x in sides.exchanges for flag in (x.ready, x.free)),
            cube_ends=ends[0],
            vector_ends=ends[1],
        ),
    )


def _check_tensors(sides: Sides) -> None:
    """Raises InputError where one side needs what the other writes to a tensor of the author's."""
    for mine, other in ((sides.cube, sides.vector), (sides.vector, sides.cube)):
        used = {
            buffer.name
            for stmt in walk.statements(other)
            for buffer in (*walk.reads(stmt), *walk.writes(stmt))
        }
        for stmt in walk.statements(mine):
            for buffer in walk.writes(stmt):
                if buffer.scope != "global" or isinstance(buffer, Exchange):
                    continue
                if buffer.name in used:
                    raise failure(
                        "T2C579",
                        f"{buffer.name} is written here by one kind of cores and used by the "
                        "other, which do not wait for each other's tensors",
                        stmt.span,
                        help="let another kernel do one of the two",
                    )


def _params(vector: CoresPlan, cube: CoresPlan):  # type: ignore[no-untyped-def]
    """The parameters, each in the role that both sides together give it."""
    for mine, other in zip(vector.params, cube.params, strict=True):
        if not isinstance(mine, TensorParam) or not isinstance(other, TensorParam):
            yield mine
            continue
        roles = {p.role for p in (mine, other) if p.used}
        role = roles.pop() if len(roles) == 1 else "inout" if roles else mine.role
        yield replace(mine, role=role, used=mine.used or other.used)


def _flags(
    sides: Sides,
) -> tuple[tuple[tuple[Step, ...], tuple[Step, ...]], tuple[tuple[Step, ...], tuple[Step, ...]]]:
    """Flags before the first block and after the last, of the cube and of the vector cores.

    What has not been written yet has been read: the reader says so at the start, and the writer
    waits once more at the end, so that no flag is left set.
    """
    starts: tuple[list[Step], list[Step]] = ([], [])
    ends: tuple[list[Step], list[Step]] = ([], [])
    for exchange in sides.exchanges:
        by_cube = exchange.name in sides.made_by_cube
        free = f"{exchange.name} is free at first"
        start = CrossFlag(action="set", flag=exchange.free, unit="MTE2", remark=free)
        starts[1 if by_cube else 0].append(start)
        last = "no flag stays set"
        end = CrossFlag(action="wait", flag=exchange.free, remark=last)
        ends[0 if by_cube else 1].append(end)
    return (tuple(starts[0]), tuple(starts[1])), (tuple(ends[0]), tuple(ends[1]))


def _workspace(sides: Sides, handles: dict[str, str]) -> tuple[WorkTensor, ...]:
    found = []
    offset = 0
    for exchange in sides.exchanges:
        size = exchange.dtype.bytes
        for extent in exchange.shape:
            assert isinstance(extent, Const)
            size *= int(extent.value)
        writer = "cube" if exchange.name in sides.made_by_cube else "vector"
        reader = "vector" if exchange.name in sides.made_by_cube else "cube"
        found.append(
            WorkTensor(
                param=exchange.name,
                handle=handles[exchange.name],
                dtype=exchange.dtype,
                shape=exchange.shape,
                offset=offset,
                bytes=size,
                purpose=f"{writer} to {reader} cores",
            )
        )
        offset += -(-size // _ALIGN) * _ALIGN
    return tuple(found)


def _vector_side(
    function: forms.Function, sides: Sides, target: CoresTarget, unit: CubeUnit
) -> tuple[CoresPlan, int]:
    """The plan of the vector cores, and how many beside each cube core take part.

    Two share the rows of a block where no row needs another, else one does all of it.
    """
    launch = function.launches[0]
    touched = {
        buffer.name
        for stmt in walk.statements(sides.vector)
        for buffer in (*walk.reads(stmt), *walk.writes(stmt))
    }
    buffers = tuple(b for b in (*launch.buffers, *sides.products) if b.name in touched)
    launch = replace(launch, body=sides.vector, buffers=buffers)
    function = replace(function, launches=(launch,))
    target = replace(target, cores=unit.cores)
    taken = taken_names(function, target) | {CORE}
    loops = unpack_loops(strip_loops(launch, taken), taken)
    staged = stage_globals(loops, target, taken)
    launch = split_versions(staged, taken)
    whole = Attempt(function, launch, target, Names(set(taken)))
    for cut in cuts(launch, whole.layouts, whole.edges):
        if not cut.rows or cut.size * unit.vector_cores != cut.extent:
            continue
        if not stores_all(launch, whole.edges, cut.root):
            continue
        names = Names(set(taken))
        smaller = split(launch, cut, whole.layouts, whole.edges, names)
        loop = smaller.body[0]
        if not isinstance(loop, forms.For) or isinstance(loop.body[0], forms.If):
            continue
        half = replace(smaller, body=loop.body)
        known = (
            Compare(dtype=BOOL, op=">=", a=loop.var, b=const(0)),
            Compare(dtype=BOOL, op="<", a=loop.var, b=const(unit.vector_cores)),
        )
        divided = replace(function, assumptions=(*function.assumptions, *known))
        attempt = Attempt(divided, half, target, names)
        if attempt.fit is None:
            continue
        plan = attempt.plan(None)
        which = CCall(dtype=INT32, function="GetSubBlockIdx", args=())
        remark = f"this vector core's part of the rows, {cut.size} of {cut.extent}"
        local = Local(name=loop.var.name, dtype=INT32, value=which, remark=remark)
        return replace(plan, setup=(local, *plan.setup)), unit.vector_cores
    if whole.fit is None:
        raise too_large(whole)
    return whole.plan(None), 1
