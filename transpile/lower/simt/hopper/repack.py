"""Tensors whose rows TMA cannot reach: copied to aligned rows, worked on there, copied back.

TMA wants rows 16 bytes apart. Where a size is odd, the ordinary way loads element by element, several times
slower; a copy of the operands is read and written once, at the speed of memory. So beside the launch of the
entry with roles there are others of the same entry, over tensors of the workspace: the launches before
copy what is read, one behind copies what was written. They run where the sizes say that it pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from tile2c.runtime.expressions import evaluate, names_of
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Binary, Buffer, Expr, Var, const
from tile2c.transpile.ir.forms import Copy
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    CStmt,
    Entry,
    EntryParam,
    LaunchPlan,
    Plan,
    Section,
    TensorMap,
    Workspace,
)
from tile2c.transpile.lower.simt.entry_points import multiple_of
from tile2c.transpile.lower.simt.hopper.launch import WithRoles
from tile2c.transpile.lower.simt.hopper.row_copies import CHUNK, THREADS, copy_entry, size_param
from tile2c.transpile.lower.simt.hopper.slabs import far_apart
from tile2c.transpile.lower.simt.hopper.unfit import Unfit
from tile2c.transpile.lower.simt.launches import ALIGN
from tile2c.transpile.lower.simt.matrix import gemm_extents
from tile2c.transpile.lower.simt.uses import names_in
from tile2c.transpile.record import record
from tile2c.transpile.render.expressions import CPrinter
from tile2c.transpile.wording import listed

_MOST_GROUPS = 2  # pitches that may be odd each for itself
# What a product costs more without TMA and what copies cost, on an H200, rounded to the careful side:
# multiply-adds that take a nanosecond longer; bytes that are copied in one; nanoseconds of the launches.
_SLOWER = 60_000
_COPIED = 1_500
_LAUNCHES = 10_000
_LINE = 128  # bytes of the L2's lines


@record(kw_only=True)
class Packed:
    """A tensor with its place in the workspace: `pitch` elements from row to row."""

    buffer: Buffer
    written: bool
    rows: Expr
    columns: Expr
    told: Expr  # a multiple of 16 bytes: what the entry takes for the size
    pitch: Expr  # whole lines of the L2, of which a box then needs one a row
    stride: Expr  # the pitch of the tensor itself
    bytes: Expr


def with_repacking(plan: Plan, whole: WithRoles, direct: LaunchPlan) -> Plan:
    """The plan of both entries with launches over aligned copies between `direct` and the last one.

    The plan as it is where that cannot be said or never pays; raises Unfit where the entry then never runs.
    """
    (entry,) = whole.plan().entries
    groups = _groups(whole, entry)
    work = _work(whole)
    always = [key for key in groups if b.known(groups[key][0].stride) is not None]
    never = len(always) < sum(b.known(x) is not None for x in whole.conditions.pitches)
    if not groups or len(groups) > _MOST_GROUPS or work is None or never:
        if known_odd(whole):
            raise Unfit(known_odd(whole))
        return plan
    printer = CPrinter(whole.ctx.target.dialect)
    tensors = [packed for group in groups.values() for packed in group]
    moved = b.add(*(_size(x) for x in tensors))
    limit = f"{printer(work)} / {_SLOWER} > {_LAUNCHES} + ({printer(moved)}) / {_COPIED}"
    if not names_of(limit):
        if not evaluate(limit, {}):
            raise Unfit(known_odd(whole))
        limit = ""
    odd = {
        key: "" if key in always else multiple_of(printer, stride, key[1], "!=")
        for key, stride in _strides(groups)
    }
    sizes = [f"{printer(b.for_host(dim))} > 0" for dim in whole.conditions.positive]
    sizes += [
        multiple_of(printer, stride, unit)
        for stride, unit in whole.conditions.pitches.items()
        if (printer(b.for_host(stride)), unit) not in groups
    ]
    pays = _all_of([*sizes, limit])
    here = _all_of([*whole.addresses, pays])  # the same entry, so all that it asks for
    parts = _workspace(tensors)
    before = [x for x in tensors if not x.written]
    behind = [x for x in tensors if x.written]
    copies = _copies(plan.name, before, odd, here, 0, printer)
    middle = len(before)
    main = [] if always else [replace(direct, group=middle)]
    for count in range(1, len(groups) + 1):
        for chosen in combinations(groups, count):
            if not set(always) <= set(chosen):
                continue
            main.append(_launch(entry, direct, groups, chosen, odd, here, middle, printer))
    last = [replace(x, group=middle) for x in plan.launches[1:]]
    copies_back = _copies(plan.name, behind, odd, here, middle + 1, printer)
    some = "" if always else " or ".join(odd.values())
    return replace(
        plan,
        entries=(*plan.entries, *_entries(whole, plan.name, tensors)),
        launches=(*copies, *main, *last, *copies_back),
        workspace=parts,
        workspace_when=_all_of([f"({some})" if some else "", pays]) or "1",
        notes=(*plan.notes, _note(tensors, some)),
    )


def _note(tensors: Sequence[Packed], some: str) -> str:
    """The header's line."""
    read = [x.buffer.name for x in tensors if not x.written]
    made = [x.buffer.name for x in tensors if x.written]
    words = f"{_listed(read)} copied to aligned rows of a workspace first" if read else ""
    if made:
        words += f"{', ' if read else ''}{_listed(made)} copied from there at the end"
    where = f"{some}: where that pays, " if some else ""
    return f"repack   {where}{words}"


def known_odd(whole: WithRoles) -> str:
    """Why a tensor can be loaded from a copy alone, whatever the sizes of a call; "" if none is so."""
    for stride, unit in whole.conditions.pitches.items():
        if b.known(stride) is not None:
            maps = (x.map for x in (*whole.roles.once, *whole.roles.loads))
            name = next(x.tensor for x in maps if stride in _strides_of(whole, x.tensor))
            tensor = next(
                x.tensor
                for x in whole.ctx.function.params
                if x.tensor is not None and x.name == name
            )
            return far_apart(tensor, stride, unit)
    return ""


def _strides_of(whole: WithRoles, name: str) -> tuple[Expr, ...]:
    """Strides of a tensor of the function, in elements."""
    params = whole.ctx.function.params
    tensor = next((x.tensor for x in params if x.tensor is not None and x.name == name), None)
    return () if tensor is None else whole.ctx.pitch(tensor)


def _all_of(conditions: Sequence[str]) -> str:
    return " and ".join(x for x in conditions if x)


def _listed(names: Sequence[str]) -> str:
    return f"{listed(names)} {'is' if len(names) == 1 else 'are'}"


# ---- what can be packed

Key = tuple[str, int]  # a pitch as text, and what it has to be a multiple of


def _groups(whole: WithRoles, entry: Entry) -> dict[Key, list[Packed]]:
    """Tensors by their pitch; empty where one of them is more than rows that maps move."""
    ctx = whole.ctx
    loads = (*whole.roles.once, *whole.roles.loads)
    maps = [*(x.map for x in loads), *(x.map for x in whole.passages.values())]
    if any(x.corners is not None for x in maps):
        return {}
    written = {x.map.tensor for x in whole.passages.values()}
    read = {x.map.tensor for x in loads}
    by_pointer = {x.name for x in entry.params if x.kind != "tensor_map"}
    if written & read or (written | read) & by_pointer:
        return {}
    if not all(_covers(whole, x.copy) for x in whole.passages.values()):
        return {}
    params = {x.tensor.name: x.tensor for x in ctx.function.params if x.tensor is not None}
    printer = CPrinter(ctx.target.dialect)
    found: dict[Key, list[Packed]] = {}
    pitches = {
        printer(b.for_host(stride)): unit
        for stride, unit in whole.conditions.pitches.items()
        if b.known(stride) is not None
        or (isinstance(stride, Var) and _counts_only(whole, entry, stride, unit))
    }
    for name in dict.fromkeys(x.tensor for x in maps):
        buffer = params.get(name)
        if buffer is None or buffer.strides is not None or len(buffer.shape) < 2:
            return {}
        stride = b.for_host(buffer.shape[-1])
        if printer(stride) not in pitches:
            continue  # it has to be aligned, or is
        unit = pitches[printer(stride)]
        found.setdefault((printer(stride), unit), []).append(
            _packed(buffer, name in written, stride, unit)
        )
    return found


def _counts_only(whole: WithRoles, entry: Entry, size: Var, unit: int) -> bool:
    """Whether the entry asks for the size to count its rounds and tiles, at most.

    It was lowered for whole multiples of `unit`; over copies it is told the next one, which is as many
    tiles of whole units, begun ones included, but says nothing else that is the same.
    """
    counted = [whole.roles.loop.stop, *(whole.ctx.launch.grid if whole.stays else ())]
    for count in counted:
        tiles = isinstance(count, Binary) and count.op == "ceildiv" and count.a == size
        if b.mentions(count, size.name):
            of = b.known(count.b) if isinstance(count, Binary) and tiles else None
            if of is None or of % unit:
                return False
    lines = [whole.stop_line, *whole.count_lines]

    def without_counts(stmt: CStmt) -> CStmt:
        if not isinstance(stmt, Section):
            return stmt
        rest = (x for x in stmt.body if not any(x is line for line in lines))
        return replace(stmt, body=tuple(without_counts(x) for x in rest))

    return size.name not in names_in(tuple(without_counts(x) for x in entry.body))


def _packed(buffer: Buffer, written: bool, stride: Expr, unit: int) -> Packed:
    rows: Expr = const(1)
    for extent in buffer.shape[:-1]:
        rows = b.mul(rows, b.for_host(extent))
    told = b.mul(b.ceil_div(b.for_host(stride), const(unit)), const(unit))
    line = const(_LINE // buffer.dtype.bytes)
    pitch = b.mul(b.ceil_div(b.for_host(stride), line), line)
    return Packed(
        buffer=buffer,
        written=written,
        rows=rows,
        columns=b.for_host(stride),
        told=told,
        pitch=pitch,
        stride=b.for_host(stride),
        bytes=b.mul(b.mul(rows, pitch), const(buffer.dtype.bytes)),
    )


def _covers(whole: WithRoles, copy: Copy) -> bool:
    """Whether the launch's stores write every element: each block its own tile, the grid all of them."""
    launch, printer = whole.ctx.launch, CPrinter(whole.ctx.target.dialect)
    grid = dict(zip((x.name for x in launch.blocks), launch.grid, strict=True))
    used: set[str] = set()
    for part, dim in zip(copy.dst.ranges, copy.dst.buffer.shape, strict=True):
        names = [x.name for x in b.walk(part.start) if isinstance(x, Var) and x.name in grid]
        if not names and b.literal(part.start, 0) and b.known(part.extent) == b.known(dim):
            continue
        if len(names) != 1 or names[0] in used:
            return False
        (name,) = names
        used.add(name)
        tile = b.mul(b.local(name), part.extent)
        whole_grid = b.for_host(b.ceil_div(dim, const(b.known(part.extent) or 1)))
        if printer(part.start) != printer(tile):
            return False
        if printer(b.for_host(grid[name])) != printer(whole_grid):
            return False
    return used == {name for name, extent in grid.items() if b.known(extent) != 1}


def _work(whole: WithRoles) -> Expr | None:
    """Multiply-adds of the launch as the host computes them; None where it cannot."""
    loop = whole.roles.loop
    rounds = b.for_host(b.sub(loop.stop, loop.start))
    known = {size.name for size in whole.ctx.function.sizes}
    if any(isinstance(part, Var) and part.name not in known for part in b.walk(rounds)):
        return None
    tile = 0
    for gemm in (x for x in loop.body if id(x) in whole.roles.products):
        m, n, k = gemm_extents(gemm)  # type: ignore[arg-type]
        tile += m * n * k
    found: Expr = const(tile)
    for extent in whole.ctx.launch.grid:
        found = b.mul(found, b.for_host(extent))
    return b.mul(found, rounds)


def _size(packed: Packed) -> Expr:
    return packed.bytes


# ---- launches


def _strides(groups: dict[Key, list[Packed]]) -> list[tuple[Key, Expr]]:
    return [(key, group[0].stride) for key, group in groups.items()]


def _workspace(tensors: Sequence[Packed]) -> tuple[Workspace, ...]:
    offset: Expr = const(0)
    found = []
    for packed in tensors:
        size = b.mul(b.ceil_div(packed.bytes, const(ALIGN)), const(ALIGN))
        found.append(Workspace(name=_name(packed), offset=offset, bytes=size))
        offset = b.add(offset, size)
    return tuple(found)


def _name(packed: Packed) -> str:
    return f"{packed.buffer.name}_aligned"


def _copies(
    name: str,
    tensors: Sequence[Packed],
    odd: dict[Key, str],
    pays: str,
    group: int,
    printer: CPrinter,
) -> list[LaunchPlan]:
    """A launch for each tensor: to the workspace, or back from there."""
    found = []
    for number, packed in enumerate(tensors):
        chunks = b.ceil_div(packed.columns, const(CHUNK))
        kind = packed.buffer.dtype
        tensor = EntryParam(name=packed.buffer.name, kind="tensor", dtype=kind)
        scratch = EntryParam(name=_name(packed), kind="workspace", dtype=kind)
        pitches = [("from", packed.stride), ("to", packed.pitch)]
        first, second = (scratch, tensor) if packed.written else (tensor, scratch)
        if packed.written:
            pitches = [("from", packed.pitch), ("to", packed.stride)]
        numbers = [
            size_param(f"{packed.buffer.name}_columns", packed.columns),
            *(size_param(f"{packed.buffer.name}_{way}_pitch", value) for way, value in pitches),
        ]
        key = next(key for key in odd if key[0] == printer(packed.stride))
        found.append(
            LaunchPlan(
                group=group + number,
                when=_all_of([odd[key], pays]) or None,
                entry=_entry_name(name, kind),
                grid=(b.mul(packed.rows, chunks), const(1), const(1)),
                block=(THREADS, 1, 1),
                params=(first, second, *numbers),
            )
        )
    return found


def _launch(
    entry: Entry,
    direct: LaunchPlan,
    groups: dict[Key, list[Packed]],
    chosen: tuple[Key, ...],
    odd: dict[Key, str],
    pays: str,
    group: int,
    printer: CPrinter,
) -> LaunchPlan:
    """The entry with roles over copies of the tensors of the chosen pitches."""
    packed = {x.buffer.name: x for key in chosen for x in groups[key]}
    conditions = [odd[key] for key in chosen]
    conditions += [
        multiple_of(printer, groups[key][0].stride, key[1]) for key in groups if key not in chosen
    ]
    told = {key[0]: groups[key][0].told for key in chosen}
    params = tuple(
        replace(param, map=_moved(param.map, packed[param.map.tensor]))
        if param.map is not None and param.map.tensor in packed
        else replace(param, value=told.get(param.name))
        for param in entry.params
    )
    return replace(direct, group=group, when=_all_of([*conditions, pays]) or None, params=params)


def _moved(described: TensorMap, packed: Packed) -> TensorMap:
    """The map over the copy."""
    size = const(packed.buffer.dtype.bytes)
    strides: list[Expr] = []
    pitch = packed.pitch
    for extent in reversed(packed.buffer.shape[:-1]):
        strides.append(b.mul(pitch, size))
        pitch = b.mul(pitch, b.for_host(extent))
    return replace(described, strides=tuple(strides), workspace=_name(packed))


def _entry_name(name: str, kind: DType) -> str:
    return f"{name}_rows_{kind.name}"


def _entries(whole: WithRoles, name: str, tensors: Sequence[Packed]) -> list[Entry]:
    """One entry for each type of element."""
    found: dict[str, Entry] = {}
    for packed in tensors:
        kind = packed.buffer.dtype
        entry = _entry_name(name, kind)
        found.setdefault(entry, copy_entry(entry, kind))
    whole.ctx.need("unroll")
    return list(found.values())
