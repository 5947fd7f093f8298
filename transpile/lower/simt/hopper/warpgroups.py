"""How consumer warpgroups share a product, where its sums lie, and how registers are dealt out."""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.expr import Const
from tile2c.transpile.ir.forms import Gemm
from tile2c.transpile.lower.plan import Choice
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.unfit import Crowded, Unfit
from tile2c.transpile.lower.simt.layouts import Axis, Digit, Layout
from tile2c.transpile.lower.simt.matrix import gemm_extents
from tile2c.transpile.record import record

THREADS = 128  # of a warpgroup
_ROWS = 64  # of an instruction
_STEP_BYTES = 32  # of K, of one instruction
_FLOATS_8 = ("float8_e4m3fn", "float8_e5m2")
_BYTES = ("int8", "uint8")
_EXACT_DEPTH = 128  # of K: what 8-bit floats may add up to within the matrix unit
_FILE = 65536  # registers of an SM
_SPARE = 32  # registers a consumer needs beside its sums
_PRODUCER = 24  # registers that are enough to start copies; setmaxnreg's least


@record(kw_only=True)
class WarpgroupPlan:
    """`tiles_m` instructions of 64 x `n` a warpgroup, `groups_m` x `groups_n` warpgroups."""

    groups_m: int
    groups_n: int
    tiles_m: int
    n: int  # columns of a warpgroup, and of an instruction
    k: int
    step: int  # of K, of an instruction
    part: int = 0  # columns whose sums leave the matrix unit together; 0: they stay there
    depth: int = 0  # of K, after which they leave
    swapped: bool = False  # it computes c^T = b^T a^T: few rows of c are columns of an instruction

    @property
    def sums(self) -> int:
        """Registers of a thread that hold sums."""
        return self.tiles_m * self.n // 2

    @property
    def registers(self) -> int:
        """Registers of sums, and of those that are fresh from the matrix unit."""
        return self.sums + self.part // 2


@record(kw_only=True)
class Registers:
    """setmaxnreg's numbers; None where the launch's own share is enough."""

    producer: int | None
    consumer: int


def oriented(gemm: Gemm, plan: WarpgroupPlan) -> Gemm:
    """The product as the instructions see it: b^T a^T where the plan swaps the operands."""
    if not plan.swapped:
        return gemm
    return replace(
        gemm,
        a=gemm.b,
        b=gemm.a,
        transpose_a=not gemm.transpose_b,
        transpose_b=not gemm.transpose_a,
    )


def plan_warpgroups(
    ctx: Context, gemm: Gemm, groups: int, *, may_swap: bool = False
) -> WarpgroupPlan:
    """Splits M between the warpgroups, N only what M does not take; raises Unfit.

    With `may_swap` it may be taken as the one of c^T: where it has fewer rows than an instruction, or where
    the instructions then have more columns: these read their first operand less often from shared memory.
    """
    step = _step(gemm)
    if gemm.c.buffer.scope != "fragment":
        raise Unfit(f"{gemm.c.buffer.name} is no fragment")
    m, n, k = gemm_extents(gemm)
    if k % step:
        raise Unfit(f"K of a tile is {k}, and wgmma takes multiples of {step}")
    swapped = may_swap and gemm.a.buffer.scope == "shared" and _better_swapped(m, n, groups)
    if swapped:
        m, n = n, m
    if m % _ROWS:
        raise Unfit(f"tiles of {m} rows are not made of the 64 rows that one wgmma takes")
    blocks = m // _ROWS
    across = next(
        count
        for count in range(min(groups, blocks), 0, -1)
        if blocks % count == 0 and groups % count == 0
    )
    rest = groups // across
    if n % (rest * 8) or n // rest > 256:
        raise Unfit(
            f"{groups} warpgroups cannot share a {m} x {n} tile in parts of at most 256 columns"
        )
    plan = WarpgroupPlan(
        groups_m=across,
        groups_n=rest,
        tiles_m=blocks // across,
        n=n // rest,
        k=k,
        step=step,
        swapped=swapped,
    )
    plan = _with_promotion(ctx, gemm, plan, groups)
    if gemm.a.buffer.dtype.name in _BYTES and plan.n > 24 and plan.n % 16:
        raise Unfit(f"{plan.n} columns a warpgroup, and wgmma of bytes takes multiples of 16")
    size = f"m64n{plan.part or plan.n}k{step}"
    ctx.choices.append(
        Choice(
            name=f"warpgroups of {gemm.c.buffer.name}",
            value=f"{across} x {rest}",
            reason=f"each computes {m // across} x {plan.n} {'of the transpose ' if swapped else ''}"
            f"with wgmma {size}; rows are split first",
        )
    )
    return plan


def _better_swapped(m: int, n: int, groups: int) -> bool:
    """Whether c^T has rows enough where c has not, or wider parts of a warpgroup that need no swap."""
    if m < _ROWS:
        return n % _ROWS == 0
    if groups == 1 or m % _ROWS or n % _ROWS:
        return False  # a lone warpgroup with rows for two is joined by another one
    rows, columns = (_part_columns(x, y, groups) for x, y in ((m, n), (n, m)))
    return rows < columns <= 256


def _part_columns(m: int, n: int, groups: int) -> int:
    """Columns of an instruction where rows are split first."""
    blocks = m // _ROWS
    across = max(x for x in range(1, min(groups, blocks) + 1) if not (blocks % x or groups % x))
    return n // (groups // across)


def _step(gemm: Gemm) -> int:
    """K of an instruction for the operands' types; raises Unfit where there is none."""
    a, b, c = (x.buffer.dtype for x in (gemm.a, gemm.b, gemm.c))
    kinds = {a.name, b.name}
    halves = len(kinds) == 1 and kinds <= {"float16", "bfloat16"}
    floats = halves or kinds <= set(_FLOATS_8)
    if not (floats and c.name == "float32") and not (kinds <= set(_BYTES) and c.name == "int32"):
        inputs = " and ".join(sorted(kinds))
        raise Unfit(f"gemms of {inputs} into {c.name} have no wgmma here")
    if not halves:
        for side, along_k in ((gemm.a, not gemm.transpose_a), (gemm.b, gemm.transpose_b)):
            if not along_k:
                raise Unfit(
                    f"rows of {side.buffer.name} do not run along K, as wgmma wants 8-bit ones"
                )
        if gemm.a.buffer.scope == "fragment":
            raise Unfit(f"{gemm.a.buffer.name} is a fragment of 8-bit elements")
    return _STEP_BYTES // a.bytes


def _with_promotion(ctx: Context, gemm: Gemm, plan: WarpgroupPlan, groups: int) -> WarpgroupPlan:
    """How far sums of 8-bit floats stay in the matrix unit, and how much leaves it at once.

    The reference's fast accumulation leaves them there; so may products that start from zero and are short.
    """
    if gemm.a.buffer.dtype.name not in _FLOATS_8:
        return plan
    if ctx.function.fast_accumulation:
        return _noted(ctx, plan, "sums of 8-bit floats stay in the matrix unit, which keeps few bits: "
                      "fast_accumulation=True")  # fmt: skip
    fresh = isinstance(gemm.clear, Const) and bool(gemm.clear.value)
    if fresh and plan.k <= _EXACT_DEPTH:
        return plan
    depth = next(x for x in range(_EXACT_DEPTH, 0, -plan.step) if plan.k % x == 0)
    budget = consumer_registers(groups) - _SPARE - plan.sums
    for count in (1, 2, 4, 8):
        part = plan.n // count
        if plan.n % count == 0 and part % 8 == 0 and part // 2 <= budget:
            plan = replace(plan, part=part, depth=depth)
            words = f"sums of 8-bit floats leave the matrix unit, which keeps few bits, after {depth} of K"
            return _noted(ctx, plan, words)
    raise Crowded(_crowded(plan.sums, consumer_registers(groups)))


def _noted(ctx: Context, plan: WarpgroupPlan, words: str) -> WarpgroupPlan:
    if words not in ctx.notes:
        ctx.notes.append(words)
    return plan


def roles_choice(groups: int, registers: Registers) -> Choice:
    """Who does what, for `--emit plan`."""
    count = "1 warpgroup computes" if groups == 1 else f"{groups} warpgroups compute"
    reason = f"{registers.consumer} registers for each computing thread"
    if registers.producer is not None:
        reason += f", {registers.producer} for each of those that load"
    return Choice(name="roles", value=f"1 warpgroup loads, {count}", reason=reason)


def held_plan(gemm: Gemm, plan: WarpgroupPlan) -> WarpgroupPlan:
    """How a first operand lies in registers: as sums of its shape would (PTX, wgmma's fragments)."""
    return replace(plan, n=gemm_extents(gemm)[2], part=0)


def consumer_registers(groups: int) -> int:
    """The most registers a consumer's thread can have."""
    total = (groups + 1) * THREADS
    share = min(_FILE // total // 8 * 8, 255)
    if groups == 1:
        return share
    left = share * total - _PRODUCER * THREADS
    return min(left // (groups * THREADS) // 8 * 8, 240)


def plan_registers(groups: int, sums: int) -> Registers:
    """Shares of the register file: what the producer leaves goes to the consumers; raises Crowded."""
    total = (groups + 1) * THREADS
    share = min(_FILE // total // 8 * 8, 255)
    if groups == 1:
        if sums + _SPARE > share:
            raise Crowded(_crowded(sums, share))
        return Registers(producer=None, consumer=share)
    consumer = consumer_registers(groups)
    producer = min((share * total - consumer * groups * THREADS) // THREADS // 8 * 8, 40)
    if sums + _SPARE > consumer:
        raise Crowded(_crowded(sums, consumer))
    return Registers(producer=producer, consumer=consumer)


def half_of_registers(groups: int) -> Registers | None:
    """Shares of half of the register file; None where setmaxnreg has nobody to take from."""
    total = (groups + 1) * THREADS
    share = _FILE // (2 * total) // 8 * 8
    if groups < 2 or share <= _PRODUCER:
        return None
    consumer = (share * total - _PRODUCER * THREADS) // (groups * THREADS) // 8 * 8
    return Registers(producer=_PRODUCER, consumer=consumer)


def _crowded(sums: int, budget: int) -> str:
    return (
        f"{sums} sums a thread do not fit in {budget} registers: use more threads or a smaller tile"
    )


def accumulator_layout(ctx: Context, plan: WarpgroupPlan) -> Layout:
    """Who holds which sum (PTX, wgmma's register fragments): element i of a 64 x n product lies in row
    16 warp + lane / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (lane % 4) + i % 2."""
    columns_of_8 = plan.n // 8
    rows = [
        Digit("thread", 8, 4),
        Digit("value", 2, 2, "h"),
        Digit("thread", 4, 32),
        Digit("value", plan.tiles_m, 4 * columns_of_8, "m"),
        Digit("thread", plan.groups_m, THREADS * plan.groups_n),
    ]
    columns = [
        Digit("value", 2, 1, "v"),
        Digit("thread", 4, 1),
        Digit("value", columns_of_8, 4, "n"),
        Digit("thread", plan.groups_n, THREADS),
    ]
    shape = (_ROWS * plan.tiles_m * plan.groups_m, plan.n * plan.groups_n)
    dims = [tuple(d for d in digits if d.extent > 1) for digits in (rows, columns)]
    return Layout(
        shape[::-1] if plan.swapped else shape,
        tuple(reversed(dims)) if plan.swapped else tuple(dims),
        ctx.threads,
        (Axis(plan.tiles_m, 4 * columns_of_8), Axis(columns_of_8, 4), Axis(4, 1)),
    )
