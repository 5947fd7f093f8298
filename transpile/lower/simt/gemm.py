"""T.gemm: the loop over K, and the writer for matrix instructions whose operands are vectors."""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.dtypes import INT32, DType
from tile2c.transpile.ir.expr import Const, Expr, Var, const
from tile2c.transpile.ir.forms import Gemm, Region
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Address,
    Assign,
    Branch,
    CCall,
    CStmt,
    Declarator,
    Element,
    Local,
    Loop,
    Scope,
    Section,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.iteration import changed, loop_over
from tile2c.transpile.lower.simt.matrix import GemmPlan, MatrixPlan, MicroPlan, row_of_fragment
from tile2c.transpile.lower.simt.micro import micro_statements
from tile2c.transpile.lower.simt.mma import MmaWriter
from tile2c.transpile.lower.simt.operand_ways import aligned, counter, part_index
from tile2c.transpile.lower.simt.partition import operand_held
from tile2c.transpile.lower.simt.steps import Access, Step
from tile2c.transpile.lower.simt.values import (
    Place,
    convert,
    shared_element,
)
from tile2c.transpile.record import record

_FEW_STEPS = 4  # of K in a tile: the compiler unrolls them


def lower_gemm(ctx: Context, gemm: Gemm, plan: GemmPlan) -> Step:
    """One loop over K: operands to registers, then every product of the warp's (or thread's) sums."""
    wishes = (("k", "kk"), ("m", "mm"), ("n", "nn"), ("a", "a_regs"), ("b", "b_regs"))
    k, m, n, a, bb = names = [ctx.namer.ours(*wish) for wish in wishes]
    if isinstance(plan, MicroPlan):
        parts = micro_statements(ctx, gemm, plan, (a, bb, k, m, n))
    else:
        parts = (_matrix_loop(ctx, gemm, plan, (a, bb, k, m, n)),)
    for name in names:
        ctx.namer.release(name)
    parts = (*_clear(ctx, gemm), *parts)
    return Step(
        body=(Section(comments=(*gemm.comments, gemm.quote), body=parts, span=gemm.span),),
        accesses=tuple(
            _reads(ctx, operand) for operand in (gemm.a, gemm.b) if operand.buffer.scope == "shared"
        ),
        quote=gemm.quote,
    )


def _matrix_loop(
    ctx: Context, gemm: Gemm, plan: MatrixPlan, names: tuple[str, str, str, str, str]
) -> Loop:
    unroll = False
    if plan.instruction.load == "plain":
        body = _Plain(ctx, gemm, plan, names).statements()
        unroll = "fragment" in (gemm.a.buffer.scope, gemm.b.buffer.scope)
    else:
        writer = MmaWriter(ctx, gemm, plan, names)
        body, unroll = writer.statements(), writer.unrolled
    steps = (b.known(_extent_k(gemm)) or 0) // plan.instruction.k
    once = ctx.variant and bool(ctx.target.async_copy) and not unroll and 1 < steps <= _FEW_STEPS
    return Loop(
        var=names[2],
        start=const(0),
        stop=_extent_k(gemm),
        step=const(plan.instruction.k),
        body=body,
        unroll=unroll,
        rolled=once and ctx.unaligned,
        rolled_unaligned=once and not ctx.unaligned,
        dtype=INT32,
    )


def _clear(ctx: Context, gemm: Gemm) -> tuple[CStmt, ...]:
    """`clear_accum`: zeros in the accumulators first, always or under its condition."""
    if isinstance(gemm.clear, Const) and not gemm.clear.value:
        return ()
    dtype, layout = gemm.c.buffer.dtype, ctx.layouts[gemm.c.buffer.name]
    extents = [] if layout.scalar else [axis.extent for axis in layout.axes]
    wishes = (("m", "mm"), ("n", "nn"), ("v", "vv"))
    names = [
        ctx.namer.ours(*wish) if extent > 1 else ""
        for wish, extent in zip(wishes, extents, strict=False)
    ]
    looped = [(name, extent) for name, extent in zip(names, extents, strict=True) if name]
    for name, _ in looped:
        ctx.namer.release(name)
    subscripts = tuple(b.local(name) if name else const(0) for name in names)
    target = Element(dtype=dtype, array=gemm.c.buffer.name, subscripts=subscripts)
    body: tuple[CStmt, ...] = (
        Assign(target=target, value=Const(dtype=dtype, value=0.0 if dtype.is_float else 0)),
    )
    for name, extent in reversed(looped):
        frame = loop_over(name, const(extent))
        body = (changed(frame, body=body, unroll=name == looped[0][0]),)
    if isinstance(gemm.clear, Const):
        return body
    condition = convert(ctx, gemm.clear, Place(values={}))
    return (Branch(condition=condition, then=body),)


def operand_registers(element_bytes: int, plan: GemmPlan) -> int:
    """Registers of operands while a step of K is computed: one side is held, the other passes."""
    if isinstance(plan, MicroPlan):
        return plan.rows + plan.columns
    each = plan.instruction.a.values * element_bytes // 4
    if plan.instruction.load != "plain":  # both sides are held
        return plan.tiles_m * each + plan.tiles_n * plan.instruction.b.values * element_bytes // 4
    return (min(plan.tiles_m, plan.tiles_n) + 1) * each


def _extent_k(gemm: Gemm) -> Expr:
    return gemm.a.shape[-2] if gemm.transpose_a else gemm.a.shape[-1]


def _reads(ctx: Context, operand: Region) -> Access:
    ring = ctx.ring.get(operand.buffer.name)
    if ring is None:
        return Access(buffer=operand.buffer.name, write=False)
    return Access(buffer=operand.buffer.name, write=False, depth=ring.depth, ring=ring.loop)


class _Writer:
    """What both ways of loading operands share."""

    def __init__(
        self, ctx: Context, gemm: Gemm, plan: MatrixPlan, names: tuple[str, str, str, str, str]
    ) -> None:
        self.ctx, self.gemm, self.plan = ctx, gemm, plan
        self.a, self.b, k, m, n = names
        self.k = b.local(k)
        self.m, self.n = counter(m, plan.tiles_m), counter(n, plan.tiles_n)

    def warp(self, side: str) -> Expr:
        """Where the warp's rows (m) or columns (n) start in the tile."""
        plan, lanes = self.plan, self.ctx.target.team
        if side == "m":
            if plan.warps_m == 1:
                return const(0)
            return self.ctx.thread_digit(
                lanes * plan.warps_n, plan.warps_m, plan.tiles_m * plan.instruction.m
            )
        if plan.warps_n == 1:
            return const(0)
        return self.ctx.thread_digit(lanes, plan.warps_n, plan.tiles_n * plan.instruction.n)

    def address(self, operand: Region, row: Expr, column: Expr) -> Address:
        whole = self.plan.instruction.load == "ldmatrix"
        element = shared_element(
            self.ctx, operand.buffer, (row, column), Place(values={}), whole=whole
        )
        return Address(dtype=operand.buffer.dtype, element=element)

    def loop(self, var: Expr, stop: int, *body: CStmt) -> CStmt:
        if not isinstance(var, Var):  # a single one
            return body[0] if len(body) == 1 else Scope(body=body)
        return Loop(
            var=var.name, start=const(0), stop=const(stop), step=const(1), body=body, dtype=INT32
        )

    def accumulator(self) -> Element:
        """The registers of one instruction: C_local[m][n]."""
        return Element(
            dtype=self.gemm.c.buffer.dtype,
            array=self.gemm.c.buffer.name,
            subscripts=(self.m, self.n),
        )

    def named(self, row: Expr, column: Expr) -> tuple[list[CStmt], Expr, Expr]:
        """`const int row = ..., col = ...;`, where the swizzle needs the row twice."""
        names = [("row", row), ("col", column)]
        declared = []
        values: list[Expr] = []
        for name, value in names:
            fresh = self.ctx.namer.ours(name, f"{name}_of_tile")
            self.ctx.namer.release(fresh)
            declared.append(Declarator(name=fresh, value=value))
            values.append(b.local(fresh))
        return [Local(dtype=INT32, names=tuple(declared))], values[0], values[1]


@record
class _Side:
    """One operand: its register name, the loop over its tiles, the shared tile that it comes from."""

    letter: str  # m or n
    name: str
    var: Expr
    count: int
    operand: Region
    k_in_rows: bool


class _Plain(_Writer):
    """Operands as small vectors, read from the shared tile by the instruction's own map.

    Those of the side with fewer tiles are held for a step of K, the others pass one by one.
    """

    def statements(self) -> tuple[CStmt, ...]:
        plan = self.plan
        kind = self.gemm.a.buffer.dtype
        vector = self.ctx.vector_type(kind, plan.instruction.a.values)
        total = self.gemm.c.buffer.dtype
        self.ctx.need(
            plan.instruction.name,
            type=kind.name,
            vector=vector,
            sum=self.ctx.vector_type(total, plan.instruction.c.values),
        )
        a = _Side("m", self.a, self.m, plan.tiles_m, self.gemm.a, self.gemm.transpose_a)
        bb = _Side("n", self.b, self.n, plan.tiles_n, self.gemm.b, not self.gemm.transpose_b)
        held, passing = (a, bb) if plan.tiles_m <= plan.tiles_n else (bb, a)
        registers = Local(
            dtype=kind,
            ctype=vector,
            const=False,
            names=(Declarator(name=held.name, dims=(const(held.count),)),),
        )
        one = Element(dtype=kind, array=held.name, subscripts=(held.var,))
        other = Element(dtype=kind, array=passing.name, subscripts=())
        args = (one, other) if held is a else (other, one)
        call = CCall(dtype=INT32, function=plan.instruction.name, args=(*args, self.accumulator()))
        product = Assign(target=self.accumulator(), value=call)
        return (
            registers,
            self.loop(held.var, held.count, *self._load(held, one, vector)),
            self.loop(
                passing.var,
                passing.count,
                *self._load(passing, other, vector),
                self.loop(held.var, held.count, product),
            ),
        )

    def _load(self, side: _Side, target: Element, vector: str) -> list[CStmt]:
        """One operand fragment; its k neighbours come in one access where they lie so."""
        instruction, operand = self.plan.instruction, side.operand
        fragment = instruction.a if side.letter == "m" else instruction.b
        step = instruction.m if side.letter == "m" else instruction.n
        base = b.add(self.warp(side.letter), b.mul(side.var, const(step)))
        across = self._along(fragment, 0, base, None)
        depth = self._along(fragment, 1, self.k, None)
        layout = self.ctx.shared.get(operand.buffer.name)
        fresh = not target.subscripts
        if operand.buffer.scope == "fragment":
            value = self._held(side)
            if fresh:
                name = Declarator(name=target.array, value=value)
                return [Local(dtype=target.dtype, ctype=vector, names=(name,))]
            return [Assign(target=target, value=value)]
        grouped = layout is not None and layout.group == fragment.values
        if grouped or (not side.k_in_rows and aligned(self.ctx, operand, fragment.values)):
            row, column = (depth, across) if side.k_in_rows else (across, depth)
            declared, row, column = self.named(row, column)
            value = self._read(operand, row, column)
            if fresh:
                name = Declarator(name=target.array, value=value)
                return [*declared, Local(dtype=target.dtype, ctype=vector, names=(name,))]
            return [*declared, Assign(target=target, value=value)]
        e = self.ctx.namer.ours("e", "element")
        self.ctx.namer.release(e)
        depth = self._along(fragment, 1, self.k, b.local(e))
        row, column = (depth, across) if side.k_in_rows else (across, depth)
        declared, row, column = self.named(row, column)
        index = part_index(self.ctx, operand, row, column)
        element = shared_element(self.ctx, operand.buffer, index, Place(values={}))
        one = Element(
            dtype=target.dtype, array=target.array, subscripts=(*target.subscripts, b.local(e))
        )
        gather = self.loop(
            b.local(e), fragment.values, *declared, Assign(target=one, value=element)
        )
        if not fresh:
            return [gather]
        name = Declarator(name=target.array)
        return [Local(dtype=target.dtype, ctype=vector, names=(name,), const=False), gather]

    def _held(self, side: _Side) -> Expr:
        """An operand that its lanes hold already, as a vector or as neighbours in an array."""
        buffer, instruction = side.operand.buffer, self.plan.instruction
        layout = self.ctx.layouts[buffer.name]
        letter = "a" if side.letter == "m" else "b"
        held = operand_held(self.ctx, self.gemm, self.plan, letter, layout)
        assert held is not None  # settle_gemms has moved the others
        step = b.div(self.k, const(instruction.k))
        subscripts = held.subscripts({"fragment": const(0), "tile": side.var, "step": step})
        element = Element(dtype=buffer.dtype, array=buffer.name, subscripts=subscripts)
        if layout.element == "vector":
            return replace(element, subscripts=subscripts[:-1])
        self.ctx.aligned_fragments.add(buffer.name)
        return self._load_operand(buffer.dtype, Address(dtype=buffer.dtype, element=element))

    def _load_operand(self, kind: DType, address: Expr) -> CCall:
        count = self.plan.instruction.a.values
        vector = self.ctx.vector_type(kind, count)
        function = self.ctx.helper_name("load_operand", vector, f"of_{count}", kind.name)
        self.ctx.need(
            "load_operand",
            name=function,
            vector=vector,
            type=self.ctx.target.dialect.types[kind.name],
            count=count,
        )
        return CCall(dtype=kind, function=function, args=(address,))

    def _read(self, operand: Region, row: Expr, column: Expr) -> CCall:
        """One lane's part of an operand, whose values are neighbours in the tile."""
        kind, count = operand.buffer.dtype, self.plan.instruction.a.values
        layout = self.ctx.shared.get(operand.buffer.name)
        whole = layout is not None and count % layout.chunk == 0
        index = part_index(self.ctx, operand, row, column)
        element = shared_element(self.ctx, operand.buffer, index, Place(values={}), whole=whole)
        address: Expr = Address(dtype=kind, element=element)
        if layout is not None and layout.group > 1:  # the group itself: its first element's address
            address = replace(element, subscripts=element.subscripts[:-1])
        return self._load_operand(kind, address)

    def _along(self, fragment: object, dim: int, base: Expr, value: Expr | None) -> Expr:
        """base plus the lane's (and value's) part of one coordinate of a fragment."""
        from tile2c.transpile.targets.simt import Fragment

        assert isinstance(fragment, Fragment)
        total = base
        for holder, extent, weight, place in reversed(row_of_fragment(fragment, dim)):
            if holder == "lane":
                total = b.add(total, self.ctx.thread_digit(weight, extent, place))
            elif value is not None:
                total = b.add(total, b.mul(value, const(place)))
        return total
