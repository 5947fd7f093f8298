"""How the operands of a product get from their tiles into registers."""

from __future__ import annotations

from typing import Literal

from tile2c.transpile.ir.dtypes import INT32, DType
from tile2c.transpile.ir.expr import Expr, Var, const
from tile2c.transpile.ir.forms import Gemm, Region
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.access import alignment
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.held import Held
from tile2c.transpile.lower.simt.matrix import MatrixPlan, matrix_dims
from tile2c.transpile.lower.simt.partition import operand_held
from tile2c.transpile.lower.simt.values import Place, convert
from tile2c.transpile.record import record
from tile2c.transpile.targets.simt import Fragment

Way = Literal["held", "rows", "turned rows", "vector", "registers", "elements"]


@record(kw_only=True)
class Operand:
    """One side of a gemm and how its registers are filled.

    way  "rows": ldmatrix of rows that run along k; "turned rows": ldmatrix.trans of rows across k;
         "vector": a lane's values are neighbours in the tile; "registers": those of one register are;
         "elements": one by one;
         "held": they are in a fragment, which serves as it is
    """

    side: Literal["a", "b"]
    region: Region
    fragment: Fragment
    k_in_rows: bool
    way: Way
    tiles: int
    step: int  # rows (or columns) of one instruction
    held: Held | None = None

    @property
    def dtype(self) -> DType:
        return self.region.buffer.dtype

    @property
    def per(self) -> int:
        """Elements in one register."""
        return max(1, 32 // self.dtype.bits)

    @property
    def registers(self) -> int:
        return self.fragment.values // self.per

    @property
    def chunk(self) -> int:
        """Elements of a row of 16 bytes, as ldmatrix takes them."""
        return 16 // self.dtype.bytes


def operand(ctx: Context, gemm: Gemm, plan: MatrixPlan, side: Literal["a", "b"]) -> Operand:
    """The side with the fastest way that its place, type and alignment allow."""
    instruction = plan.instruction
    region = gemm.a if side == "a" else gemm.b
    k_in_rows = gemm.transpose_a if side == "a" else not gemm.transpose_b
    fragment = instruction.a if side == "a" else instruction.b
    turned = instruction.a_turned if side == "a" else instruction.b_turned
    kept: Held | None = None
    way: Way = "elements"
    if region.buffer.scope == "fragment":
        kept = operand_held(ctx, gemm, plan, side, ctx.layouts[region.buffer.name])
        assert kept is not None  # settle_gemms has moved the others
        way = "held"
    elif instruction.load == "ldmatrix":
        chunk = 16 // region.buffer.dtype.bytes
        if aligned(ctx, region, chunk) and (not k_in_rows or region.buffer.dtype.bits == 16):
            way = "turned rows" if k_in_rows else "rows"
    elif fragment.values > 1 and _in_a_row(fragment) and aligned(ctx, region, fragment.values):
        if not k_in_rows or turned is not None:
            way = "vector"
            fragment = turned if k_in_rows and turned is not None else fragment
    elif region.buffer.dtype.bits < 32 and aligned(ctx, region, 32 // region.buffer.dtype.bits):
        fitting = turned if k_in_rows and turned is not None else fragment
        digits = fitting.rows if k_in_rows else fitting.columns
        if digits[0][0] == "value":  # what lies together in a row of the tile does in a register
            way, fragment = "registers", fitting
    return Operand(
        side=side,
        region=region,
        fragment=fragment,
        k_in_rows=k_in_rows,
        way=way,
        tiles=plan.tiles_m if side == "a" else plan.tiles_n,
        step=instruction.m if side == "a" else instruction.n,
        held=kept,
    )


def _in_a_row(fragment: Fragment) -> bool:
    """Whether the values of a lane are neighbours along k, all of them."""
    holder, extent, _ = fragment.columns[0]
    return holder == "value" and extent == fragment.values


def aligned(ctx: Context, region: Region, count: int) -> bool:
    """Whether every `count`-th element of a row of the part starts an access of that many."""
    row, column = matrix_dims(region)
    if column != len(region.ranges) - 1:
        return False
    probe = Var(dtype=INT32, name="#column", kind="loop")
    index = tuple(
        b.add(part.start, probe) if dim == column else part.start if dim != row else const(1)
        for dim, part in enumerate(region.ranges)
    )
    facts = ctx.facts
    ctx.facts = facts.with_range(probe, const(0), region.ranges[column].extent)
    found = alignment(ctx, region.buffer, index, probe.name, count)
    ctx.facts = facts
    return found == "always"


def part_index(ctx: Context, region: Region, row: Expr, column: Expr) -> tuple[Expr, ...]:
    """The index in the buffer of the element at (row, column) of the part's matrix."""
    dims, place = matrix_dims(region), Place(values={})
    index = []
    for dim, part in enumerate(region.ranges):
        start = convert(ctx, part.start, place)
        own = row if dim == dims[0] else column if dim == dims[1] else None
        index.append(start if own is None else b.add(start, own))
    return tuple(index)


def counter(name: str, count: int) -> Expr:
    """What counts `count` tiles: a loop's variable, or 0 where there is one."""
    return b.local(name) if count > 1 else const(0)
