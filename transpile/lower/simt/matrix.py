"""Matrix instructions: which one, how warps share the tile, and where accumulators lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.forms import Gemm
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Choice
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.layouts import Axis, Digit, Layout
from tile2c.transpile.targets.simt import Fragment, MatrixInstruction

Policy = Literal["square", "full_row", "full_col"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixPlan:
    """A gemm on the matrix unit: `tiles_m` x `tiles_n` instructions in each of the warps."""

    instruction: MatrixInstruction
    m: int
    n: int
    k: int
    warps_m: int
    warps_n: int
    tiles_m: int
    tiles_n: int


def plan_matrix(ctx: Context, gemm: Gemm) -> MatrixPlan:
    """Chooses instruction and warp partition, or says why there is none."""
    m, n, k = gemm_extents(gemm)
    instruction = _instruction(ctx, gemm)
    if ctx.threads % ctx.target.lanes:
        raise failure(
            "T2C510",
            f"gemm needs whole {ctx.target.group}s of {ctx.target.lanes} threads, "
            f"but the kernel has {ctx.threads} threads",
            gemm.span,
            help=f"use a multiple of {ctx.target.lanes} threads",
        )
    if k % instruction.k:
        raise failure(
            "T2C511",
            f"K of this gemm is {k}, but {instruction.name} on {ctx.target.name} takes "
            f"multiples of {instruction.k}",
            gemm.a.span or gemm.span,
            help=f"make the tile's K a multiple of {instruction.k}",
        )
    warps = ctx.threads // ctx.target.lanes
    fits = [
        (warps // wn, wn)
        for wn in range(1, warps + 1)
        if warps % wn == 0
        and m % (warps // wn * instruction.m) == 0
        and n % (wn * instruction.n) == 0
    ]
    if not fits:
        raise failure(
            "T2C512",
            f"{warps} {ctx.target.group}s cannot share a {m} x {n} tile in pieces of "
            f"{instruction.m} x {instruction.n}",
            gemm.c.span or gemm.span,
            help="use fewer threads or a larger tile",
        )
    warps_m, warps_n = min(fits, key=lambda wmn: _cost(gemm.policy, m, n, *wmn))
    ctx.choices.append(
        Choice(
            name=f"{ctx.target.group}s of {gemm.c.buffer.name}",
            value=f"{warps_m} x {warps_n}",
            reason=f"each {ctx.target.group} computes {m // warps_m} x {n // warps_n}; "
            "it reads the fewest operands so",
        )
    )
    return MatrixPlan(
        instruction=instruction,
        m=m,
        n=n,
        k=k,
        warps_m=warps_m,
        warps_n=warps_n,
        tiles_m=m // warps_m // instruction.m,
        tiles_n=n // warps_n // instruction.n,
    )


def gemm_extents(gemm: Gemm) -> tuple[int, int, int]:
    """M, N, K of the product, as numbers."""
    m, n = (b.known(extent) or 1 for extent in gemm.c.shape)
    a = [b.known(extent) or 1 for extent in gemm.a.shape]
    return m, n, a[0] if gemm.transpose_a else a[1]


def _instruction(ctx: Context, gemm: Gemm) -> MatrixInstruction:
    inputs, output = gemm.a.buffer.dtype.name, gemm.c.buffer.dtype.name
    fitting = [x for x in ctx.target.matrix if inputs in x.inputs and x.output == output]
    if fitting:
        k = gemm_extents(gemm)[2]
        return next((x for x in fitting if k % x.k == 0), fitting[-1])
    known = sorted({f"{i} -> {x.output}" for x in ctx.target.matrix for i in x.inputs})
    raise failure(
        "T2C513",
        f"gemm of {inputs} into {output} is not lowered for {ctx.target.name}",
        gemm.span,
        help=f"what works: {', '.join(known)}" if known else None,
    )


def _cost(policy: Policy, m: int, n: int, warps_m: int, warps_n: int) -> tuple[int, int]:
    """Operand elements a warp reads per step of K; the policy goes first."""
    follows = {"square": 0, "full_row": warps_n - 1, "full_col": warps_m - 1}[policy]
    return (follows, m // warps_m + n // warps_n)


def accumulator_layout(ctx: Context, plan: MatrixPlan) -> Layout:
    """Digits of C over the block: instruction, tiles of a warp, warps (rows slowest)."""
    c, lanes = plan.instruction.c, ctx.target.lanes
    values = c.values
    rows = [*_digits(c.rows, "h" if values > 1 and c.columns[0][0] == "value" else "v")]
    rows.append(Digit("value", plan.tiles_m, values * plan.tiles_n, "m"))
    rows.append(Digit("thread", plan.warps_m, lanes * plan.warps_n))
    columns = [*_digits(c.columns, "v")]
    columns.append(Digit("value", plan.tiles_n, values, "n"))
    columns.append(Digit("thread", plan.warps_n, lanes))
    _name_warps(ctx, plan)
    return Layout(
        (plan.m, plan.n),
        tuple(tuple(d for d in digits if d.extent > 1) for digits in (rows, columns)),
        ctx.threads,
        (
            Axis(plan.tiles_m, values * plan.tiles_n),
            Axis(plan.tiles_n, values),
            Axis(values, 1),
        ),
        "vector" if plan.instruction.operand == "vector" else "array",
    )


def _digits(part: tuple[tuple[Literal["lane", "value"], int, int], ...], name: str) -> list[Digit]:
    return [
        Digit("thread" if holder == "lane" else "value", extent, weight, name)
        for holder, extent, weight in part
    ]


def _name_warps(ctx: Context, plan: MatrixPlan) -> None:
    """warp_m and warp_n: where a warp's part of the tile starts."""
    lanes = ctx.target.lanes
    rows, columns = plan.tiles_m * plan.instruction.m, plan.tiles_n * plan.instruction.n
    words = f"{plan.warps_m} x {plan.warps_n} {ctx.target.group}s of {rows} x {columns}"
    for name in (f"{ctx.target.group}_m", f"{ctx.target.group}_n"):
        ctx.wanted_remarks[name] = words
    if plan.warps_m > 1:
        ctx.terms[(lanes * plan.warps_n, plan.warps_m, rows)] = f"{ctx.target.group}_m"
    if plan.warps_n > 1:
        ctx.terms[(lanes, plan.warps_n, columns)] = f"{ctx.target.group}_n"


def row_of_fragment(ctx: Context, fragment: Fragment, dim: int) -> list[tuple[str, int, int, int]]:
    """(holder, extent, weight, place) of each digit of one dimension, fastest first."""
    found: list[tuple[str, int, int, int]] = []
    place = 1
    for holder, extent, weight in fragment.rows if dim == 0 else fragment.columns:
        found.append((holder, extent, weight, place))
        place *= extent
    return found
