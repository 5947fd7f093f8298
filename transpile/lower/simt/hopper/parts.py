"""Products of few rows: the blocks of a cluster share the rounds; the first of them adds up the sums.

Such a product is as fast as its weights arrive, and few tiles would leave SMs without work. Every block
adds up its own rounds from zero; block 0 of a cluster then adds the sums of the others to its own, in the
order of the rounds, and goes on alone. How many blocks share a tile is the launch's affair: the text asks
for `gridDim.z`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Buffer, Const, Expr, const
from tile2c.transpile.ir.forms import Gemm, Let, Stmt
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Assign,
    Branch,
    CCall,
    Choice,
    CStmt,
    Declarator,
    Element,
    Escape,
    LaunchPlan,
    Local,
    Loop,
    Section,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import call, do
from tile2c.transpile.lower.simt.hopper.memory import tile_bytes
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.hopper.warpgroups import THREADS
from tile2c.transpile.lower.simt.matrix import gemm_extents
from tile2c.transpile.lower.simt.outer_statements import gemms
from tile2c.transpile.lower.simt.pipeline import rest_of
from tile2c.transpile.lower.simt.steps import Access, Step
from tile2c.transpile.record import record
from tile2c.transpile.render.expressions import CPrinter

_FEW = 64  # rows of a product that is bound by its weights
_COUNTS = (8, 4, 2)  # blocks of a cluster; 8 run on every device
_ROUNDS = 4  # that a block has at least, or its start and end cost more than it saves
PARTS_NOTE = (
    "parts    where tiles are few, 2, 4 or 8 blocks of a cluster share the rounds of each (grid z)"
)
# Clusters that fill the device start late: beyond half of its SMs they cost more than they save.
_BLOCKS = 66


@record(kw_only=True)
class Parts:
    """Names of the text: which part this is, of how many, and the rounds that are its own."""

    part: str
    parts: str
    first: str
    last: str
    lines: tuple[CStmt, ...]  # what defines them


def parts_of(
    ctx: Context,
    roles: Roles,
    zeroed: Mapping[str, str],
    statements: Sequence[Stmt],
    stop: Expr,
) -> Parts | None:
    """How the rounds are shared, or None where they are not.

    zeroed      fragments that start at zero        stop    the loop's end, as the text says it
    statements  the launch's, without what made those zero
    """
    if not _shareable(ctx, roles, zeroed, statements):
        return None
    name = roles.loop.var.author or roles.loop.var.name
    part, parts = ctx.namer.ours("part", "part_of_k"), ctx.namer.ours("parts", "parts_of_k")
    share = ctx.namer.ours("share", f"{name}_share")
    first, last = (ctx.namer.ours(f"{name}_{x}", f"rounds_{x}") for x in ("first", "last"))
    start = b.mul(b.local(part), b.local(share))
    end = call("min", b.add(b.local(first), b.local(share)), stop)
    why = "The blocks of a cluster share the rounds: more SMs load at once."

    def names(*pairs: tuple[str, Expr]) -> tuple[Declarator, ...]:
        return tuple(Declarator(name=x, value=y) for x, y in pairs)

    lines = (
        Local(
            dtype=INT32,
            names=names((part, b.local("blockIdx.z")), (parts, b.local("gridDim.z"))),
            comments=(why,),
        ),
        Local(dtype=INT32, names=names((share, b.ceil_div(stop, b.local(parts))))),
        Local(dtype=INT32, names=names((first, start), (last, end))),
    )
    return Parts(part=part, parts=parts, first=first, last=last, lines=lines)


def _shareable(
    ctx: Context, roles: Roles, zeroed: Mapping[str, str], statements: Sequence[Stmt]
) -> bool:
    """Whether rounds only add to sums of few rows that start at zero, and nothing else stands before."""
    loop, launch = roles.loop, ctx.launch
    products = gemms(loop.body)
    if any(gemm_extents(x)[0] > _FEW for x in products) or roles.once or len(roles.rings) > 1:
        return False
    if not b.literal(loop.start, 0) or len(launch.blocks) > 2 or launch.cluster != (1, 1, 1):
        return False
    loads = [load.copy for load in roles.loads]
    rounds = rest_of(loop, loads, roles.inside, ())
    before = statements[: next(k for k, x in enumerate(statements) if x is loop)]
    if not all(isinstance(x, Gemm) for x in rounds) or not all(isinstance(x, Let) for x in before):
        return False
    if not all(_only_adds(x) for x in products):
        return False
    sums = _sums(roles)
    room = sum(tile_bytes(load, roles.depth) for load in roles.loads)
    taken = sum(_bytes_of(roles, gemm) for gemm in sums)
    return all(x.c.buffer.name in zeroed for x in sums) and taken <= room


def _only_adds(gemm: Gemm) -> bool:
    """Whether no round starts its sums anew: those of the parts before it would have to go too."""
    return isinstance(gemm.clear, Const) and not gemm.clear.value


def _sums(roles: Roles) -> list[Gemm]:
    """A product for each fragment of sums."""
    found = {x.c.buffer.name: x for x in reversed(gemms(roles.loop.body))}
    return list(reversed(found.values()))


def _bytes_of(roles: Roles, gemm: Gemm) -> int:
    return roles.products[id(gemm)].sums * roles.groups * THREADS * gemm.c.buffer.dtype.bytes


# ---- the sums of all parts


def add_up(ctx: Context, roles: Roles, parts: Parts) -> list[Step]:
    """Each part leaves its sums in its shared memory, in the place of its tiles; part 0 adds them up."""
    for helper in ("cluster_arrive", "cluster_wait", "from_block"):
        ctx.need(helper)
    places: list[CStmt] = []
    kept, added = [], []
    place: Expr = b.local("shared_bytes")
    for gemm in _sums(roles):
        buffer, layout = gemm.c.buffer, ctx.layouts[gemm.c.buffer.name]
        name = ctx.namer.ours(f"{buffer.name}_kept", f"{buffer.name}_of_part")
        extents = [axis.extent for axis in layout.axes]
        places.append(_array(ctx, name, buffer, (*extents, roles.groups * THREADS), place))
        place = b.add(place, const(_bytes_of(roles, gemm)))
        kept.append(_each(ctx, buffer, extents, name, None))
        added.append(_each(ctx, buffer, extents, name, b.local(_other(ctx))))
    others = Loop(
        var=_other(ctx),
        start=const(1),
        stop=b.local(parts.parts),
        step=const(1),
        body=tuple(added),
        dtype=INT32,
    )
    first, later = (b.compare(x, b.local(parts.part), const(0)) for x in ("==", ">"))
    # Other warpgroups may still read the tiles. What is written here orders nothing behind it: those
    # who write return below.
    ring = tuple(
        Access(buffer=load.tile.name, write=True, asynchronous=True) for load in roles.loads
    )
    keep = Section(body=(*places, Branch(condition=later, then=tuple(kept))), span=roles.loop.span)
    body = (
        do("cluster_arrive"),
        do("cluster_wait", remark="the sums of the other parts are there"),
        Branch(condition=first, then=(others,)),
        do("cluster_arrive"),
        do("cluster_wait", remark="part 0 has read them"),
        Escape(kind="return", condition=later, remark="part 0 has all sums, and goes on alone"),
    )
    meet = Branch(condition=b.compare(">", b.local(parts.parts), const(1)), then=body)
    section = Section(body=(meet,), span=roles.loop.span)
    quote = roles.loop.quote
    return [
        Step(body=(keep,), accesses=ring, quote=quote),
        Step(body=(section,), quote=quote),
    ]


def _other(ctx: Context) -> str:
    name = ctx.namer.ours("other", "other_part")
    ctx.namer.release(name)
    return name


def _array(ctx: Context, name: str, buffer: Buffer, extents: Sequence[int], at: Expr) -> CStmt:
    """A name for the place of a fragment's sums in shared memory."""
    printer = CPrinter(ctx.target.dialect)
    dims = "".join(f"[{x}]" for x in extents)
    kind = printer.type_name(buffer.dtype)
    spelled = f"*reinterpret_cast<{kind}(*){dims}>({printer(at)})"
    return Local(
        dtype=buffer.dtype,
        ctype="auto&",
        const=False,
        names=(Declarator(name=name, value=b.local(spelled)),),
        remark="in the place of the loaded tiles",
    )


def _each(
    ctx: Context, buffer: Buffer, extents: Sequence[int], kept: str, other: Expr | None
) -> CStmt:
    """A thread's sums, one after another: stored, or those of another block added."""
    names = [ctx.namer.ours(x, f"{x}_of_sums") for x in ("m", "n", "v")]
    for name in names:
        ctx.namer.release(name)
    at = [b.local(x) if extent > 1 else const(0) for x, extent in zip(names, extents, strict=True)]
    own = Element(dtype=buffer.dtype, array=buffer.name, subscripts=tuple(at))
    there = Element(dtype=buffer.dtype, array=kept, subscripts=(*at, b.local("threadIdx.x")))
    move: CStmt = Assign(target=there, value=own)
    if other is not None:
        read = CCall(dtype=buffer.dtype, function="from_block", args=(there, other))
        move = Assign(target=own, value=read, op="+=")
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        if extent > 1:
            move = Loop(
                var=name,
                start=const(0),
                stop=const(extent),
                step=const(1),
                body=(move,),
                unroll=True,
                dtype=INT32,
            )
    return move


# ---- launches


def with_parts(
    ctx: Context, roles: Roles, entry: str, launches: Sequence[LaunchPlan]
) -> tuple[LaunchPlan, ...]:
    """Launches of the entry with as many parts as pay, before the one that has one part."""
    printer = CPrinter(ctx.target.dialect)
    rounds = printer(b.for_host(roles.loop.stop))
    found: list[LaunchPlan] = []
    for launch in launches:
        x, y, _ = launch.grid
        tiles = printer(b.for_host(b.mul(x, y)))
        for count in _COUNTS if launch.entry == entry else ():
            fits = f"{tiles} * {count} <= {_BLOCKS} and {rounds} >= {_ROUNDS * count}"
            when = f"{launch.when} and {fits}" if launch.when else fits
            found.append(
                replace(launch, when=when, grid=(x, y, const(count)), cluster=(1, 1, count))
            )
        found.append(launch)
    return tuple(found)


def parts_choice(launches: Sequence[LaunchPlan]) -> Choice:
    """For `--emit plan`."""
    counts = sorted({x.cluster[2] for x in launches if x.cluster is not None})
    return Choice(
        name="parts of K",
        value=", ".join(map(str, [1, *counts])),
        reason="blocks of a cluster share the rounds of a tile, as many as half of the SMs hold",
    )
