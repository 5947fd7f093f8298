"""How warps share the tiles of all gemms of a kernel: chosen together, since chained gemms have to agree.

A choice is judged, in this order, by: sums of one fragment or of fragments that loops tie together
held by different threads (impossible); the authors' policies; operands in registers that do not fit
and go through shared memory; operand elements that a warp reads. The first best wins: stable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.forms import Gemm, Stmt
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Choice
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.held import Held, held
from tile2c.transpile.lower.simt.layouts import Digit, Layout, assemble
from tile2c.transpile.lower.simt.matrix import (
    GemmPlan,
    MatrixPlan,
    MicroPlan,
    accumulator_layout,
    fitting_instructions,
    gemm_extents,
    matrix_plan,
    micro_plan,
    name_warps,
    operand_layout,
    partitions,
)
from tile2c.transpile.lower.simt.ties import Slot, tie
from tile2c.transpile.record import record

_COMBINATIONS = 2000  # beyond, each gemm keeps its best few
_FEW = 3
_BEGUN = 24
_MULTIPLIED = frozenset(
    (
        "float16 bfloat16 float32 float64 int8 uint8 float8_e4m3fn float8_e5m2 float8_e4m3fnuz "
        "float8_e5m2fnuz"
    ).split()
)


@record
class _Option:
    """One way to share one gemm."""

    plan: GemmPlan
    layout: Layout


def plan_gemms(ctx: Context, body: Sequence[Stmt], gemms: Sequence[Gemm]) -> dict[int, GemmPlan]:
    """A plan for each gemm, by identity; raises for types that nothing here multiplies."""
    for gemm in gemms:
        _check(ctx, gemm)
    without = _without_instruction(ctx, gemms)
    options = [_options(ctx, gemm, without.get(gemm.c.buffer.name)) for gemm in gemms]
    if prod(len(found) for found in options) > _COMBINATIONS:
        options = [_best_few(found) for found in options]
    classes = tie(body)[0]
    roots = [
        [classes.find((gemm.c.buffer.name, dim)) for dim in range(len(gemm.c.buffer.shape))]
        for gemm in gemms
    ]
    operands = [_operand_roots(gemm, classes) for gemm in gemms]

    def cost(candidate: tuple[_Option, ...]) -> tuple[int, ...]:
        count = len(candidate)  # of the first gemms
        return _cost(ctx, gemms[:count], candidate, roots[:count], operands[:count])

    chosen = _cheapest(options, cost)
    return {id(gemm): option.plan for gemm, option in zip(gemms, chosen, strict=True)}


def _cheapest(
    options: list[list[_Option]], cost: Callable[[tuple[_Option, ...]], tuple[int, ...]]
) -> tuple[_Option, ...]:
    """One option of each; of very many combinations those that begin best are followed."""
    if prod(len(found) for found in options) <= _COMBINATIONS:
        return min(product(*options), key=cost)
    begun: list[tuple[_Option, ...]] = [()]
    for found in options:
        longer = [(*first, option) for first in begun for option in found]
        begun = sorted(longer, key=cost)[:_BEGUN]
    return begun[0]


def _best_few(options: list[_Option]) -> list[_Option]:
    """Those that read the fewest operands, first ones first among equals."""
    return sorted(options, key=lambda option: _reads(option.plan))[:_FEW]


def tell_plans(ctx: Context, gemms: Sequence[Gemm], plans: dict[int, GemmPlan]) -> None:
    """The choices with their reasons, once they are final."""
    without = _without_instruction(ctx, gemms)
    for gemm in gemms:
        _tell(ctx, gemm, plans[id(gemm)], without.get(gemm.c.buffer.name, ""))


def _check(ctx: Context, gemm: Gemm) -> None:
    for operand in (gemm.a, gemm.b):
        kind = operand.buffer.dtype.name
        if kind not in _MULTIPLIED or kind not in ctx.target.dialect.types:
            raise failure(
                "T2C513",
                f"{operand.buffer.name} holds {kind}, which no gemm for {ctx.target.name} multiplies",
                operand.span or gemm.span,
                help="convert it to float16 or int8 in a fragment first (T.copy converts)",
            )
    whole = all(
        b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
        for part, extent in zip(gemm.c.ranges, gemm.c.buffer.shape, strict=True)
    )
    if gemm.c.buffer.scope != "fragment" or not whole:
        raise failure(
            "T2C515",
            f"gemm adds to a whole fragment, and this is a part of {gemm.c.buffer.name}",
            gemm.c.span or gemm.span,
            help="give each part a fragment of its own",
        )


def _without_instruction(ctx: Context, gemms: Sequence[Gemm]) -> dict[str, str]:
    """Fragments whose gemms are done in plain arithmetic, and why: one misfit decides for all."""
    found: dict[str, str] = {}
    for gemm in gemms:
        fitting, reason = fitting_instructions(ctx, gemm)
        if fitting and not any(partitions(ctx, gemm, x) for x in fitting):
            instruction, (m, n, _) = fitting[0], gemm_extents(gemm)
            warps = ctx.threads // ctx.target.team
            reason = (
                f"{warps} {ctx.target.team_name}s cannot share {m} x {n} in pieces of "
                f"{instruction.m} x {instruction.n}"
            )
        if reason:
            found.setdefault(gemm.c.buffer.name, reason)
    return found


def _options(ctx: Context, gemm: Gemm, reason: str | None) -> list[_Option]:
    plans: list[GemmPlan]
    if reason is not None:
        plans = [micro_plan(ctx, gemm)]
    else:
        plans = [
            matrix_plan(gemm, instruction, *pair)
            for instruction in fitting_instructions(ctx, gemm)[0]
            for pair in partitions(ctx, gemm, instruction)
        ]
    return [_Option(plan, accumulator_layout(ctx, gemm, plan)) for plan in plans]


def _operand_roots(gemm: Gemm, classes: object) -> list[tuple[str, list[Slot]]]:
    """The operands that are fragments: side, and the class of each dimension."""
    from tile2c.transpile.lower.simt.ties import Classes

    assert isinstance(classes, Classes)
    return [
        (side, [classes.find((x.buffer.name, dim)) for dim in range(len(x.buffer.shape))])
        for side, x in (("a", gemm.a), ("b", gemm.b))
        if x.buffer.scope == "fragment"
    ]


def _cost(
    ctx: Context,
    gemms: Sequence[Gemm],
    candidate: tuple[_Option, ...],
    roots: list[list[Slot]],
    operands: list[list[tuple[str, list[Slot]]]],
) -> tuple[int, ...]:
    digits: dict[Slot, tuple[Digit, ...]] = {}
    apart = against = moved = reads = 0
    for gemm, option, places in zip(gemms, candidate, roots, strict=True):
        for root, own in zip(places, option.layout.dims, strict=True):
            other = digits.setdefault(root, own)
            apart += [d.owner() for d in other] != [d.owner() for d in own]
        against += _against(gemm, option.plan)
        reads += _reads(option.plan)
    for gemm, option, fragments in zip(gemms, candidate, operands, strict=True):
        for side, places in fragments:
            moved += not _fits(ctx, gemm, option.plan, side, [digits.get(root) for root in places])
    return apart, against, moved, reads


def _against(gemm: Gemm, plan: GemmPlan) -> int:
    """How far the plan is from the author's policy."""
    if isinstance(plan, MicroPlan):
        return 0
    return {"square": 0, "full_row": plan.warps_n - 1, "full_col": plan.warps_m - 1}[gemm.policy]


def _reads(plan: GemmPlan) -> int:
    """Operand elements that a warp reads for a step of K."""
    if isinstance(plan, MicroPlan):
        return 0
    return plan.m // plan.warps_m + plan.n // plan.warps_n


def _fits(
    ctx: Context, gemm: Gemm, plan: GemmPlan, side: str, dims: list[tuple[Digit, ...] | None]
) -> bool:
    """Whether an operand held so can stay where it is; free dimensions can be held as wanted."""
    if isinstance(plan, MicroPlan):
        return False
    known = [part for part in dims if part is not None]
    if len(known) < len(dims):
        return True
    region = gemm.a if side == "a" else gemm.b
    shape = tuple(b.known(extent) or 1 for extent in region.buffer.shape)
    return operand_held(ctx, gemm, plan, side, assemble(known, shape, ctx.threads)) is not None


def operand_held(
    ctx: Context, gemm: Gemm, plan: MatrixPlan, side: str, layout: Layout
) -> Held | None:
    """How a fragment serves as an operand from where it is held, or None."""
    region = gemm.a if side == "a" else gemm.b
    whole = all(
        b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
        for part, extent in zip(region.ranges, region.buffer.shape, strict=True)
    )
    if not whole:
        return None
    wanted = operand_layout(ctx, gemm, plan, "a" if side == "a" else "b")
    return held(layout, wanted, neighbours(plan, region.buffer.dtype.bits))


def neighbours(plan: MatrixPlan, bits: int) -> int:
    """Operand elements that one register, or one vector, takes."""
    if plan.instruction.operand == "vector":
        return plan.instruction.a.values
    return max(1, 32 // bits)


def _tell(ctx: Context, gemm: Gemm, plan: GemmPlan, reason: str) -> None:
    """The choice with its reason; what is slow or rounded is said aloud."""
    name = gemm.c.buffer.name
    if isinstance(plan, MicroPlan):
        ctx.choices.append(
            Choice(
                name=f"threads of {name}",
                value=f"{plan.threads_m} x {plan.threads_n}",
                reason=f"plain multiply-adds, {plan.rows} x {plan.columns} sums a thread: {reason}",
            )
        )
        ctx.diagnostics.warning(
            "T2C516",
            f"this gemm is done without the matrix unit, many times slower: {reason}",
            gemm.span,
        )
        return
    name_warps(ctx, gemm, plan)
    group = ctx.target.team_name
    ctx.choices.append(
        Choice(
            name=f"{group}s of {name}",
            value=f"{plan.warps_m} x {plan.warps_n}",
            reason=f"each {group} computes {plan.m // plan.warps_m} x {plan.n // plan.warps_n}; "
            "all gemms of the kernel considered, operands move least so",
        )
    )
    if plan.instruction.note and plan.instruction.note not in ctx.notes:
        ctx.notes.append(plan.instruction.note)
    if plan.instruction.cost:
        ctx.diagnostics.warning("T2C517", f"{ctx.target.name}: {plan.instruction.cost}", gemm.span)
