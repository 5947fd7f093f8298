"""T.gemm on matrix instructions with operands in shared memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import DTYPES, INT32
from tile2c.transpile.ir.expr import Const, Expr, const
from tile2c.transpile.ir.forms import Gemm, Region
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Address,
    Assign,
    Branch,
    CCall,
    CStmt,
    Declarator,
    Do,
    Element,
    Local,
    Loop,
    Section,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.iteration import changed, loop_over
from tile2c.transpile.lower.simt.layouts import Digit
from tile2c.transpile.lower.simt.matrix import MatrixPlan, row_of_fragment
from tile2c.transpile.lower.simt.steps import Access, Step
from tile2c.transpile.lower.simt.values import (
    Place,
    convert,
    shared_element,
    storage_subscripts,
)

_UINT32 = DTYPES["uint32"]


def lower_gemm(ctx: Context, gemm: Gemm, plan: MatrixPlan) -> Step:
    """One loop over K: operands to registers, then every product of the warp's tiles."""
    held = gemm.a.buffer.scope == "fragment" and plan.instruction.load == "ldmatrix"
    for operand in (gemm.b,) if held else (gemm.a, gemm.b):
        _check_operand(ctx, operand)
    k, m, n = ctx.namer.ours("k", "kk"), ctx.namer.ours("m", "mm"), ctx.namer.ours("n", "nn")
    a, bb = ctx.namer.ours("a", "a_regs"), ctx.namer.ours("b", "b_regs")
    writer = _Ldmatrix if plan.instruction.load == "ldmatrix" else _Plain
    body = writer(ctx, gemm, plan, (a, bb, k, m, n)).statements()
    for name in (k, m, n, a, bb):
        ctx.namer.release(name)
    loop = Loop(
        var=k,
        start=const(0),
        stop=_extent_k(gemm),
        step=const(plan.instruction.k),
        body=body,
        unroll=held,  # registers of the operand are counted through
        dtype=INT32,
    )
    parts = (*_clear(ctx, gemm, plan), loop)
    return Step(
        body=(Section(comments=(*gemm.comments, gemm.quote), body=parts, span=gemm.span),),
        accesses=tuple(
            _reads(ctx, operand)
            for operand in (gemm.a, gemm.b)
            if operand.buffer.scope == "shared"
        ),
        quote=gemm.quote,
    )


def _clear(ctx: Context, gemm: Gemm, plan: MatrixPlan) -> tuple[CStmt, ...]:
    """`clear_accum`: zeros in the accumulators first, always or under its condition."""
    if isinstance(gemm.clear, Const) and not gemm.clear.value:
        return ()
    dtype = gemm.c.buffer.dtype
    names = [ctx.namer.ours(*wishes) for wishes in (("m", "mm"), ("n", "nn"), ("v", "vv"))]
    for name in names:
        ctx.namer.release(name)
    target = Element(
        dtype=dtype, array=gemm.c.buffer.name, subscripts=tuple(b.local(name) for name in names)
    )
    body: tuple[CStmt, ...] = (
        Assign(target=target, value=Const(dtype=dtype, value=0.0 if dtype.is_float else 0)),
    )
    extents = (plan.tiles_m, plan.tiles_n, plan.instruction.c.values)
    for name, extent in zip(reversed(names), reversed(extents), strict=True):
        frame = loop_over(name, const(extent))
        body = (changed(frame, body=body, unroll=name == names[0]),)
    if isinstance(gemm.clear, Const):
        return body
    condition = convert(ctx, gemm.clear, Place(values={}))
    return (Branch(condition=condition, then=body),)


def operand_registers(element_bytes: int, plan: MatrixPlan) -> int:
    """Registers of operands while a step of K is computed: one side is held, the other passes."""
    each = plan.instruction.a.values * element_bytes // 4
    return (min(plan.tiles_m, plan.tiles_n) + 1) * each


def _extent_k(gemm: Gemm) -> Expr:
    return gemm.a.shape[0] if gemm.transpose_a else gemm.a.shape[1]


def _check_operand(ctx: Context, operand: Region) -> None:
    if operand.buffer.scope != "shared":
        raise failure(
            "T2C514",
            f"{operand.buffer.name} is in {operand.buffer.scope} memory; gemm operands are read from "
            f"shared tiles on {ctx.target.name}",
            operand.span,
            help="copy it to a shared tile first",
        )
    whole = all(
        b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
        for part, extent in zip(operand.ranges, operand.buffer.shape, strict=True)
    )
    if not whole or len(operand.ranges) != 2:
        raise failure(
            "T2C514",
            f"gemm takes whole shared tiles with two dimensions here, and this is a part of "
            f"{operand.buffer.name}",
            operand.span,
        )


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
        self.k, self.m, self.n = b.local(k), b.local(m), b.local(n)

    def warp(self, side: str) -> Expr:
        """Where the warp's rows (m) or columns (n) start in the tile."""
        plan, lanes = self.plan, self.ctx.target.lanes
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
        from tile2c.transpile.ir.expr import Var

        assert isinstance(var, Var)
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


class _Ldmatrix(_Writer):
    """16-bit operands through ldmatrix: four 8 x 8 matrices an instruction (PTX ISA, ldmatrix)."""

    def statements(self) -> tuple[CStmt, ...]:
        plan = self.plan
        pairs = plan.tiles_n // 2 if plan.tiles_n % 2 == 0 else 0
        b_dims = (const(pairs), const(4)) if pairs else (const(plan.tiles_n), const(2))
        registers = Local(
            dtype=_UINT32,
            const=False,
            names=(
                Declarator(name=self.a, dims=(const(plan.tiles_m), const(4))),
                Declarator(name=self.b, dims=b_dims),
            ),
        )
        return (registers, self._load_a(), self._load_b(pairs), self._multiply(pairs))

    def _hold_a(self) -> CStmt:
        """A from a fragment that is held as sums are: its pairs are the operand's registers.

        The map of a 16 x 8 result is that of half an operand of 16 x 16 (hopper.md 4.6): register r
        holds row half r % 2 of the 8 columns k / 8 + r / 2.
        """
        self._check_held()
        layout = self.ctx.layouts[self.gemm.a.buffer.name]
        r = self.ctx.namer.ours("r", "register_")
        self.ctx.namer.release(r)
        digits: dict[tuple[int, Digit], Expr] = {}
        for dim, digit in layout.value_digits():
            place = layout.place(dim, digit)
            if dim == 0:
                value = b.mod(b.local(r), const(2)) if place == 8 else self.m
            elif place == 1:
                value = const(0)  # the first of the pair
            else:
                value = b.add(b.div(self.k, const(8)), b.div(b.local(r), const(2)))
            digits[(dim, digit)] = value
        subscripts = storage_subscripts(layout, digits)
        dtype = self.gemm.a.buffer.dtype
        pair = Element(dtype=dtype, array=self.gemm.a.buffer.name, subscripts=subscripts)
        self.ctx.need("register_pair", type=self.ctx.target.dialect.types[dtype.name])
        self.ctx.aligned_fragments.add(self.gemm.a.buffer.name)
        target = Element(dtype=_UINT32, array=self.a, subscripts=(self.m, b.local(r)))
        call = CCall(
            dtype=_UINT32, function="register_pair", args=(Address(dtype=dtype, element=pair),)
        )
        inner = self.loop(b.local(r), 4, Assign(target=target, value=call))
        return self.loop(self.m, self.plan.tiles_m, inner)

    def _check_held(self) -> None:
        """Whether the fragment's layout is that of a row of results: pairs, quads, 8 columns each."""
        gemm, ctx = self.gemm, self.ctx
        mine = ctx.layouts[gemm.a.buffer.name]
        sums = ctx.layouts[gemm.c.buffer.name]
        columns = mine.owners(1)
        fits = (
            not gemm.transpose_a
            and mine.owners(0) == sums.owners(0)
            and columns[:2] == (("value", 2, 0), ("thread", 4, 1))
            and all(holder == "value" for holder, _, _ in columns[2:])
        )
        if not fits:
            raise failure(
                "T2C514",
                f"{gemm.a.buffer.name} is not held as this gemm's operand needs it: a warp has to hold "
                "whole rows of it",
                gemm.a.span,
                help="use policy=T.GemmWarpPolicy.FullRow for the gemm that makes it and for this one, "
                "or copy it to a shared tile",
            )

    def _load_a(self) -> CStmt:
        if self.gemm.a.buffer.scope == "fragment":
            return self._hold_a()
        base = b.add(self.warp("m"), b.mul(self.m, const(16)))
        lane = self.ctx.lane()
        half = b.mul(b.div(lane, const(16)), const(8))
        if not self.gemm.transpose_a:
            row, column = b.add(base, b.mod(lane, const(16))), b.add(self.k, half)
        else:
            row = b.add(self.k, half, b.mod(lane, const(8)))
            column = b.add(base, b.mul(b.mod(b.div(lane, const(8)), const(2)), const(8)))
        target = Element(dtype=_UINT32, array=self.a, subscripts=(self.m,))
        return self.loop(
            self.m,
            self.plan.tiles_m,
            *self._load(target, self.gemm.a, row, column, self.gemm.transpose_a, 4),
        )

    def _load_b(self, pairs: int) -> CStmt:
        lane = self.ctx.lane()
        count, wide = (pairs, 16) if pairs else (self.plan.tiles_n, 8)
        base = b.add(self.warp("n"), b.mul(self.n, const(wide)))
        if not self.gemm.transpose_b:  # [K, N]: transposed on the way
            row = b.add(self.k, b.mod(lane, const(16)))
            column = b.add(base, b.mul(b.div(lane, const(16)), const(8))) if pairs else base
        else:
            turn = b.mul(b.div(lane, const(16)), const(8)) if pairs else const(0)
            row = b.add(base, turn, b.mod(lane, const(8)))
            column = b.add(self.k, b.mul(b.mod(b.div(lane, const(8)), const(2)), const(8)))
        target = Element(dtype=_UINT32, array=self.b, subscripts=(self.n,))
        registers = 4 if pairs else 2
        return self.loop(
            self.n,
            count,
            *self._load(target, self.gemm.b, row, column, not self.gemm.transpose_b, registers),
        )

    def _load(
        self,
        target: Element,
        operand: Region,
        row: Expr,
        column: Expr,
        transposed: bool,
        registers: int,
    ) -> tuple[CStmt, ...]:
        helper = "load_matrices_transposed" if transposed else "load_matrices"
        self.ctx.need(
            "load_matrices",
            name=helper,
            transposed=transposed,
            registers=registers,
            type=self.ctx.target.dialect.types[operand.buffer.dtype.name],
        )
        declared, row, column = self.named(row, column)
        call = CCall(
            dtype=INT32, function=helper, args=(target, self.address(operand, row, column))
        )
        return (*declared, Do(call=call))

    def _multiply(self, pairs: int) -> CStmt:
        self.ctx.need("mma_m16n8k16", type=self.gemm.a.buffer.dtype.name)
        a = Element(dtype=_UINT32, array=self.a, subscripts=(self.m,))
        if pairs:
            half = b.div(self.n, const(2))
            first = b.mul(b.mod(self.n, const(2)), const(2))
            b0 = Element(dtype=_UINT32, array=self.b, subscripts=(half, first))
            b1 = Element(dtype=_UINT32, array=self.b, subscripts=(half, b.add(first, const(1))))
        else:
            b0 = Element(dtype=_UINT32, array=self.b, subscripts=(self.n, const(0)))
            b1 = Element(dtype=_UINT32, array=self.b, subscripts=(self.n, const(1)))
        call = CCall(dtype=INT32, function="mma", args=(self.accumulator(), a, b0, b1))
        return self.loop(
            self.m, self.plan.tiles_m, self.loop(self.n, self.plan.tiles_n, Do(call=call))
        )


@dataclass(frozen=True, slots=True)
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
        if not side.k_in_rows or (layout is not None and layout.group == fragment.values):
            row, column = (depth, across) if side.k_in_rows else (across, depth)
            declared, row, column = self.named(row, column)
            value = self._read(operand, row, column)
            if fresh:
                name = Declarator(name=target.array, value=value)
                return [*declared, Local(dtype=target.dtype, ctype=vector, names=(name,))]
            return [*declared, Assign(target=target, value=value)]
        e = self.ctx.namer.ours("e", "element")
        self.ctx.namer.release(e)
        declared, row, column = self.named(self._along(fragment, 1, self.k, b.local(e)), across)
        element = shared_element(self.ctx, operand.buffer, (row, column), Place(values={}))
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

    def _read(self, operand: Region, row: Expr, column: Expr) -> CCall:
        """One lane's part of an operand, whose values are neighbours in the tile."""
        kind, count = operand.buffer.dtype, self.plan.instruction.a.values
        self.ctx.need(
            "load_operand",
            vector=self.ctx.vector_type(kind, count),
            type=self.ctx.target.dialect.types[kind.name],
            count=count,
        )
        layout = self.ctx.shared.get(operand.buffer.name)
        whole = layout is not None and count % layout.chunk == 0
        element = shared_element(
            self.ctx, operand.buffer, (row, column), Place(values={}), whole=whole
        )
        address: Expr = Address(dtype=kind, element=element)
        if layout is not None and layout.group > 1:  # the group itself: its first element's address
            address = replace(element, subscripts=element.subscripts[:-1])
        return CCall(dtype=kind, function="load_operand", args=(address,))

    def _along(self, fragment: object, dim: int, base: Expr, value: Expr | None) -> Expr:
        """base plus the lane's (and value's) part of one coordinate of a fragment."""
        from tile2c.transpile.targets.simt import Fragment

        assert isinstance(fragment, Fragment)
        total = base
        for holder, extent, weight, place in reversed(row_of_fragment(self.ctx, fragment, dim)):
            if holder == "lane":
                total = b.add(total, self.ctx.thread_digit(weight, extent, place))
            elif value is not None:
                total = b.add(total, b.mul(value, const(place)))
        return total
