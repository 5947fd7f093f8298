"""Matrix instructions: which one, how warps share the tile, and where accumulators lie."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tile2c.transpile.ir.forms import Gemm, Region
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.layouts import Axis, Digit, Layout, assemble
from tile2c.transpile.record import record
from tile2c.transpile.targets.simt import Fragment, MatrixInstruction

Policy = Literal["square", "full_row", "full_col"]


@record(kw_only=True)
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


@record(kw_only=True)
class MicroPlan:
    """A gemm without matrix instructions: each thread sums up `rows` x `columns` elements.

    `threads_m` x `threads_n` threads share the tile; others repeat the work of one of them.
    """

    m: int
    n: int
    k: int
    threads_m: int
    threads_n: int

    @property
    def rows(self) -> int:
        return self.m // self.threads_m

    @property
    def columns(self) -> int:
        return self.n // self.threads_n


GemmPlan = MatrixPlan | MicroPlan


def fitting_instructions(ctx: Context, gemm: Gemm) -> tuple[list[MatrixInstruction], str]:
    """Matrix instructions for the gemm's types and K, the best first; or none, and why."""
    a, c = gemm.a.buffer.dtype.name, gemm.b.buffer.dtype.name
    output, k = gemm.c.buffer.dtype.name, gemm_extents(gemm)[2]
    typed = [x for x in ctx.target.matrix if a in x.inputs and c in x.inputs and x.output == output]
    if not typed:
        return [], f"{ctx.target.name} has no matrix instruction for {a} -> {output}"
    if ctx.threads % ctx.target.team:
        group = ctx.target.team_name
        return [], f"{ctx.threads} threads are no whole {group}s of {ctx.target.team}"
    fitting = [x for x in typed if k % x.k == 0]
    if not fitting:
        return [], f"K is {k}, and matrix instructions take multiples of {typed[-1].k}"
    fragments = "fragment" in (gemm.a.buffer.scope, gemm.b.buffer.scope)
    return fitting if fragments else fitting[:1], ""


def partitions(
    ctx: Context, gemm: Gemm, instruction: MatrixInstruction
) -> tuple[tuple[int, int], ...]:
    """(warps along M, along N) that tile the gemm in whole instructions, fewest along N first."""
    m, n, _ = gemm_extents(gemm)
    warps = ctx.threads // ctx.target.team
    return tuple(
        (warps // wn, wn)
        for wn in range(1, warps + 1)
        if warps % wn == 0
        and m % (warps // wn * instruction.m) == 0
        and n % (wn * instruction.n) == 0
    )


def matrix_plan(
    gemm: Gemm, instruction: MatrixInstruction, warps_m: int, warps_n: int
) -> MatrixPlan:
    """The gemm on `instruction`, shared by warps_m x warps_n warps."""
    m, n, k = gemm_extents(gemm)
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


def micro_plan(ctx: Context, gemm: Gemm) -> MicroPlan:
    """Thread grid of a gemm on plain arithmetic: the most threads, then the squarest share of each."""
    m, n, k = gemm_extents(gemm)
    found = [
        (tm, tn)
        for tm in range(1, ctx.threads + 1)
        if m % tm == 0
        for tn in range(1, ctx.threads // tm + 1)
        if n % tn == 0
    ]
    tm, tn = max(
        found, key=lambda grid: (grid[0] * grid[1], -(m // grid[0] + n // grid[1]), grid[1])
    )
    return MicroPlan(m=m, n=n, k=k, threads_m=tm, threads_n=tn)


def gemm_extents(gemm: Gemm) -> tuple[int, int, int]:
    """M, N, K of the product, as numbers."""
    m, n = matrix_shape(gemm.c)
    a = matrix_shape(gemm.a)
    return m, n, a[0] if gemm.transpose_a else a[1]


def matrix_shape(region: Region) -> tuple[int, int]:
    """Rows and columns of a region; extents of 1 in front do not count."""
    shape = [b.known(extent) or 1 for extent in region.shape]
    return (shape[-2] if len(shape) > 1 else 1), shape[-1]


def matrix_dims(region: Region) -> tuple[int, int]:
    """The two dimensions of the buffer that are the matrix's rows and columns."""
    moving = [dim for dim, part in enumerate(region.ranges) if not part.point]
    return moving[-2], moving[-1]


def accumulator_layout(ctx: Context, gemm: Gemm, plan: GemmPlan) -> Layout:
    """Digits of C over the block; dimensions in front of the matrix are of extent 1."""
    own = _micro_layout(ctx, plan) if isinstance(plan, MicroPlan) else _matrix_layout(ctx, plan)
    shape = tuple(b.known(extent) or 1 for extent in gemm.c.buffer.shape)
    row, column = matrix_dims(gemm.c)
    dims: list[tuple[Digit, ...]] = [()] * len(shape)
    dims[row], dims[column] = own.dims
    return replace(own, shape=shape, dims=tuple(dims))


def _micro_layout(ctx: Context, plan: MicroPlan) -> Layout:
    """Neighbouring threads hold neighbouring columns; a thread's own rows and columns lie apart."""
    rows = (Digit("thread", plan.threads_m, plan.threads_n), Digit("value", plan.rows, 1, "m"))
    columns = (Digit("thread", plan.threads_n, 1), Digit("value", plan.columns, 1, "n"))
    return assemble((rows, columns), (plan.m, plan.n), ctx.threads)


def _matrix_layout(ctx: Context, plan: MatrixPlan) -> Layout:
    """Digits of C: instruction, tiles of a warp, warps (rows slowest)."""
    c, lanes = plan.instruction.c, ctx.target.team
    values = c.values
    rows = [*_digits(c.rows, "h" if values > 1 and c.columns[0][0] == "value" else "v")]
    rows.append(Digit("value", plan.tiles_m, values * plan.tiles_n, "m"))
    rows.append(Digit("thread", plan.warps_m, lanes * plan.warps_n))
    columns = [*_digits(c.columns, "v")]
    columns.append(Digit("value", plan.tiles_n, values, "n"))
    columns.append(Digit("thread", plan.warps_n, lanes))
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


def operand_layout(ctx: Context, gemm: Gemm, plan: MatrixPlan, side: Literal["a", "b"]) -> Layout:
    """Digits of an operand that stays in registers: [tiles of k][tiles of the side][one fragment]."""
    instruction, lanes = plan.instruction, ctx.target.team
    fragment = instruction.a if side == "a" else instruction.b
    tiles, warps, weight = (
        (plan.tiles_m, plan.warps_m, lanes * plan.warps_n)
        if side == "a"
        else (plan.tiles_n, plan.warps_n, lanes)
    )
    values, steps = fragment.values, plan.k // instruction.k
    across = [
        *_digits(fragment.rows, "h"),
        Digit("value", tiles, values, "m" if side == "a" else "n"),
    ]
    across.append(Digit("thread", warps, weight))
    depth = [*_digits(fragment.columns, "v"), Digit("value", steps, values * tiles, "k")]
    k_in_rows = gemm.transpose_a if side == "a" else not gemm.transpose_b
    region = gemm.a if side == "a" else gemm.b
    shape = tuple(b.known(extent) or 1 for extent in region.buffer.shape)
    dims: list[tuple[Digit, ...]] = [()] * len(shape)
    row, column = matrix_dims(region)
    first, second = (depth, across) if k_in_rows else (across, depth)
    dims[row] = tuple(digit for digit in first if digit.extent > 1)
    dims[column] = tuple(digit for digit in second if digit.extent > 1)
    axes = (Axis(steps, values * tiles), Axis(tiles, values), Axis(values, 1))
    element: Literal["array", "vector"] = "vector" if instruction.operand == "vector" else "array"
    return Layout(shape, tuple(dims), ctx.threads, axes, element)


def _digits(part: tuple[tuple[Literal["lane", "value"], int, int], ...], name: str) -> list[Digit]:
    return [
        Digit("thread" if holder == "lane" else "value", extent, weight, name)
        for holder, extent, weight in part
    ]


def name_warps(ctx: Context, gemm: Gemm, plan: MatrixPlan) -> None:
    """warp_m and warp_n: where a warp's part of the tile starts. Other gemms may share it otherwise."""
    lanes, group = ctx.target.team, ctx.target.team_name
    rows, columns = plan.tiles_m * plan.instruction.m, plan.tiles_n * plan.instruction.n
    words = f"{plan.warps_m} x {plan.warps_n} {group}s of {rows} x {columns}"
    for letter, key in (
        ("m", (lanes * plan.warps_n, plan.warps_m, rows)),
        ("n", (lanes, plan.warps_n, columns)),
    ):
        if key[1] == 1 or key in ctx.terms:
            continue
        name = f"{group}_{letter}"
        if name in ctx.terms.values():
            name = f"{name}_{gemm.c.buffer.name}"
        ctx.terms[key] = name
        ctx.wanted_remarks[name] = words


def row_of_fragment(fragment: Fragment, dim: int) -> list[tuple[str, int, int, int]]:
    """(holder, extent, weight, place) of each digit of one dimension, fastest first."""
    found: list[tuple[str, int, int, int]] = []
    place = 1
    for holder, extent, weight in fragment.rows if dim == 0 else fragment.columns:
        found.append((holder, extent, weight, place))
        place *= extent
    return found
