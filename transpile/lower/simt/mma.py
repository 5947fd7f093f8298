"""Gemms on mma.sync: operands in registers of 32 bits (doubles in their own), C as PTX maps it."""

from __future__ import annotations

from math import prod
from typing import Literal

from tile2c.transpile.ir.dtypes import DTYPES, INT32
from tile2c.transpile.ir.expr import Expr, Var, const
from tile2c.transpile.ir.forms import Gemm
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Address,
    Assign,
    CCall,
    CStmt,
    Declarator,
    Do,
    Element,
    Local,
    Loop,
    Scope,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.matrix import MatrixPlan
from tile2c.transpile.lower.simt.operand_ways import Operand, counter, operand, part_index
from tile2c.transpile.lower.simt.values import Place, shared_element

_UINT32 = DTYPES["uint32"]
Way = Literal["held", "rows", "turned rows", "vector", "registers", "elements"]


class MmaWriter:
    """The statements of one step of K: operands to registers, then every product of the warp."""

    def __init__(
        self, ctx: Context, gemm: Gemm, plan: MatrixPlan, names: tuple[str, str, str, str, str]
    ) -> None:
        self.ctx, self.gemm, self.plan = ctx, gemm, plan
        a, bb, k, m, n = names
        self.names = {"a": a, "b": bb}
        self.k = b.local(k)
        self.a, self.b = operand(ctx, gemm, plan, "a"), operand(ctx, gemm, plan, "b")
        self.register: Expr = const(0)  # counts a fragment's registers while they are filled
        self.pairs = self.b.way in ("rows", "turned rows") and self.b.tiles % 2 == 0
        counters, counts = {"a": m, "b": n}, {"a": self.a.tiles, "b": self.b.tiles}
        self.vars = {side: counter(counters[side], counts[side]) for side in counts}
        counts["b"] //= 2 if self.pairs else 1
        self.loads = {side: counter(counters[side], counts[side]) for side in counts}

    @property
    def unrolled(self) -> bool:
        """Registers of a fragment are counted through by the steps of K."""
        return "held" in (self.a.way, self.b.way)

    def statements(self) -> tuple[CStmt, ...]:
        plain = self.a.dtype.name == "float64"
        dims_a: tuple[Expr, ...] = (const(self.a.tiles),)
        dims_b: tuple[Expr, ...] = (const(self.b.tiles),)
        if not plain:
            times = 2 if self.pairs else 1
            dims_a = (*dims_a, const(self.a.registers))
            dims_b = (const(self.b.tiles // times), const(self.b.registers * times))
        registers = Local(
            dtype=self.a.dtype if plain else _UINT32,
            const=False,
            names=(
                Declarator(name=self.names["a"], dims=dims_a),
                Declarator(name=self.names["b"], dims=dims_b),
            ),
        )
        return (registers, self._load(self.a), self._load(self.b), self._multiply())

    # ---- operands

    def _load(self, side: Operand) -> CStmt:
        count, body = side.tiles, self._one(side)
        if side.side == "b" and self.pairs:
            count //= 2
        return self.loop(self.loads[side.side], count, *body)

    def _one(self, side: Operand) -> tuple[CStmt, ...]:
        """Fills the registers of one fragment (of two, where b comes in pairs)."""
        var = self.loads[side.side]
        target = Element(dtype=_UINT32, array=self.names[side.side], subscripts=(var,))
        if side.way in ("rows", "turned rows"):
            found = self._matrices(side, target)
        elif side.way == "vector":
            found = self._vector(side, target)
        else:
            found = self._each(side, target)
        if side.dtype.name == "float32":
            count = side.registers * (2 if side.side == "b" and self.pairs else 1)
            self.ctx.need("round_to_tf32", registers=count)
            found = (*found, Do(call=CCall(dtype=INT32, function="round_to_tf32", args=(target,))))
        return found

    def _matrices(self, side: Operand, target: Element) -> tuple[CStmt, ...]:
        """ldmatrix: lane l passes the address of row l % 8 of matrix l / 8, a row being 16 bytes."""
        lane, chunk = self.ctx.lane(), side.chunk
        turned = side.way == "turned rows"
        depth, wide = side.registers, 8
        if side.side == "a":
            # Registers count rows first, then k: matrices below each other, then beside.
            depth, wide = side.registers // 2, 16
        count = depth * (2 if side.side == "a" or self.pairs else 1)
        if side.side == "b" and self.pairs:
            wide = 16
        base = b.add(self.warp(side), b.mul(self.loads[side.side], const(wide)))
        eight = b.mod(lane, const(8))
        second, fourth = b.mod(b.div(lane, const(8)), const(2)), b.div(lane, const(16))
        across: Expr = const(0)  # which 8 of the rows (or columns) of C
        along: Expr = const(0)  # which chunk of k
        if side.side == "a":
            across, along = second, fourth if depth == 2 else const(0)
        elif depth == 2:
            across, along = fourth if self.pairs else const(0), second
        elif self.pairs:
            across = second
        k_part = b.mul(along, const(8 if turned else chunk))
        c_part = b.mul(across, const(8))
        if turned:
            row = b.add(self.k, *self._sixteen(k_part, eight, along is second))
            column = b.add(base, c_part)
        else:
            row = b.add(base, *self._sixteen(c_part, eight, across is second))
            column = b.add(self.k, k_part)
        helper = f"load_matrices{'_transposed' if turned else ''}"
        self.ctx.need(
            "load_matrices",
            name=helper,
            transposed=turned,
            registers=count,
            type=self.ctx.target.dialect.types[side.dtype.name],
        )
        declared, row, column = self.named(row, column)
        layout = self.ctx.shared.get(side.region.buffer.name)
        whole = layout is not None and chunk % layout.chunk == 0
        address = Address(dtype=side.dtype, element=self.element(side, row, column, whole=whole))
        return (*declared, Do(call=CCall(dtype=INT32, function=helper, args=(target, address))))

    def _sixteen(self, part: Expr, eight: Expr, second: bool) -> tuple[Expr, ...]:
        """lane / 8 % 2 * 8 + lane % 8 is lane % 16."""
        if second:
            return (b.mod(self.ctx.lane(), const(16)),)
        return (part, eight)

    def _vector(self, side: Operand, target: Element) -> tuple[CStmt, ...]:
        """A lane's values are neighbours: one access."""
        across, depth = self._along(side, 0, None), self._along(side, 1, None)
        row, column = (depth, across) if side.k_in_rows else (across, depth)
        self.ctx.need("load_registers", registers=side.registers, type=self._type(side))
        declared, row, column = self.named(row, column)
        layout = self.ctx.shared.get(side.region.buffer.name)
        whole = layout is not None and side.fragment.values % layout.chunk == 0
        address = Address(dtype=side.dtype, element=self.element(side, row, column, whole=whole))
        call = CCall(dtype=INT32, function="load_registers", args=(target, address))
        return (*declared, Do(call=call))

    def _each(self, side: Operand, target: Element) -> tuple[CStmt, ...]:
        """Register after register, by the map of the fragment."""
        if side.dtype.name == "float64":
            value, declared = self._value(side, const(0))
            return (*declared, Assign(target=target, value=value))
        r = self.register = self._scoped("r", "register_")
        one = Element(dtype=_UINT32, array=target.array, subscripts=(*target.subscripts, r))
        kind = self._type(side)
        start = b.mul(r, const(side.per))
        if side.way == "registers":
            self.ctx.need("register_of", type=kind)
            element, declared = self._value(side, start, const(0))
            whole: Expr = Address(dtype=side.dtype, element=element)
            call = CCall(dtype=_UINT32, function="register_of", args=(whole,))
            return (self.loop(r, side.registers, *declared, Assign(target=one, value=call)),)
        if side.held is not None and side.per > 1:
            self.ctx.need("register_of", type=kind)
            self.ctx.aligned_fragments.add(side.region.buffer.name)
            value, _ = self._value(side, start)
            first: Expr = Address(dtype=side.dtype, element=value)
            call = CCall(dtype=_UINT32, function="register_of", args=(first,))
            return (self.loop(r, side.registers, Assign(target=one, value=call)),)
        if side.per == 1:
            value, declared = self._value(side, start)
            call = CCall(dtype=_UINT32, function="__float_as_uint", args=(value,))
            return (self.loop(r, side.registers, *declared, Assign(target=one, value=call)),)
        e, part = self._scoped("e", "element"), self._scoped("part", "part_of_register")
        value, declared = self._value(side, start, e)
        array = Local(
            dtype=side.dtype,
            const=False,
            align=4,
            names=(Declarator(name=part.name, dims=(const(side.per),)),),
        )
        put = Assign(
            target=Element(dtype=side.dtype, array=part.name, subscripts=(e,)), value=value
        )
        self.ctx.need("register_of", type=kind)
        call = CCall(dtype=_UINT32, function="register_of", args=(part,))
        return (
            self.loop(
                r,
                side.registers,
                array,
                self.loop(e, side.per, *declared, put),
                Assign(target=one, value=call),
            ),
        )

    def _value(
        self, side: Operand, value: Expr, inner: Expr | None = None
    ) -> tuple[Element, list[CStmt]]:
        """The element at value index `value` of the lane's fragment, wherever the operand is."""
        if side.held is not None:
            subscripts = side.held.subscripts(
                {
                    "fragment": value,
                    "tile": self.loads[side.side],
                    "step": b.div(self.k, const(self.plan.instruction.k)),
                }
            )
            return (
                Element(dtype=side.dtype, array=side.region.buffer.name, subscripts=subscripts),
                [],
            )
        across, depth = self._along(side, 0, value, inner), self._along(side, 1, value, inner)
        row, column = (depth, across) if side.k_in_rows else (across, depth)
        declared, row, column = self.named(row, column)
        return self.element(side, row, column, whole=False), declared

    def _along(
        self, side: Operand, dim: int, value: Expr | None, inner: Expr | None = None
    ) -> Expr:
        """One coordinate (0: across, 1: along k) of an element of the lane's fragment.

        `inner` counts inside the register that starts at `value`.
        """
        digits = side.fragment.rows if dim == 0 else side.fragment.columns
        if dim == 0:
            base = b.add(self.warp(side), b.mul(self.loads[side.side], const(side.step)))
        else:
            base = self.k
        terms: list[Expr] = []
        for at, (holder, extent, weight) in enumerate(digits):
            place = prod(other for _, other, _ in digits[:at])
            if holder == "lane":
                terms.append(self.ctx.thread_digit(weight, extent, place))
            elif inner is not None and weight < side.per:
                terms.append(b.mul(inner, const(place)))
                if weight * extent > side.per:  # neighbours of several registers
                    terms.append(b.mul(self.register, const(side.per // weight * place)))
            elif value is not None:
                index = b.div(value, const(weight))
                if inner is not None:  # whole registers: value is a multiple of what one holds
                    index = b.div(self.register, const(weight // side.per))
                if weight * extent < side.fragment.values:
                    index = b.mod(index, const(extent))
                terms.append(b.mul(index, const(place)))
        return b.add(base, *reversed(terms))

    def element(self, side: Operand, row: Expr, column: Expr, *, whole: bool) -> Element:
        """The element of the operand's tile at (row, column) of its matrix."""
        index = part_index(self.ctx, side.region, row, column)
        return shared_element(self.ctx, side.region.buffer, index, Place(values={}), whole=whole)

    # ---- products

    def _multiply(self) -> CStmt:
        instruction, gemm = self.plan.instruction, self.gemm
        m, n = self.vars["a"], self.vars["b"]
        sums = gemm.c.buffer.dtype
        fields: dict[str, str | int | bool] = {
            "type": self.a.dtype.name,
            "sum": sums.name,
            "b_type": self.b.dtype.name,
        }
        if instruction.a_turned is not None:
            fields["a_turned"] = self.a.fragment is instruction.a_turned
            fields["b_turned"] = self.b.fragment is instruction.b_turned
        words = [self.a.dtype.name]
        if self.b.dtype != self.a.dtype:
            words.append(f"by_{self.b.dtype.name}")
        words += [f"k{instruction.k}", f"into_{sums.name}"]
        if instruction.a_turned is not None:
            words += [
                "a_turned" if fields["a_turned"] else "",
                "b_turned" if fields["b_turned"] else "",
            ]
        if instruction.through:
            fields["inner"] = self._inner(instruction.through)
            for kind in sorted({self.a.dtype.name, self.b.dtype.name}):
                self.ctx.need(f"widened_{kind}", converts=instruction.converts)
        key = (instruction.name, *sorted(fields.items()))
        function = self.ctx.helper_name("mma", key, *(word for word in words if word))
        self.ctx.need(instruction.name, name=function, **fields)
        if sums.bits == 16:
            self.ctx.aligned_fragments.add(gemm.c.buffer.name)
        c = Element(dtype=sums, array=gemm.c.buffer.name, subscripts=(m, n))
        a = Element(dtype=_UINT32, array=self.names["a"], subscripts=(m,))
        call = CCall(dtype=INT32, function=function, args=(c, a, *self._b_registers(n)))
        return self.loop(m, self.a.tiles, self.loop(n, self.b.tiles, Do(call=call)))

    def _inner(self, template: str) -> str:
        """The product of float16 that one of narrower types is done with."""
        fields = {"type": "float16", "sum": "float32", "b_type": "float16"}
        name = self.ctx.helper_name("mma", (template, *sorted(fields.items())), "float16", "halves")
        self.ctx.need(template, name=name, **fields)
        return name

    def _b_registers(self, n: Expr) -> list[Expr]:
        array = self.names["b"]
        if self.b.dtype.name == "float64":
            return [Element(dtype=self.b.dtype, array=array, subscripts=(n,))]
        tile: Expr = n
        first: Expr = const(0)
        if self.pairs:
            tile = b.div(n, const(2))
            first = b.mul(b.mod(n, const(2)), const(self.b.registers))
        return [
            Element(dtype=_UINT32, array=array, subscripts=(tile, b.add(first, const(r))))
            for r in range(self.b.registers)
        ]

    # ---- words

    def warp(self, side: Operand) -> Expr:
        """Where the warp's rows (a) or columns (b) start in the tile."""
        plan, lanes = self.plan, self.ctx.target.team
        count, weight = (
            (plan.warps_m, lanes * plan.warps_n) if side.side == "a" else (plan.warps_n, lanes)
        )
        if count == 1:
            return const(0)
        return self.ctx.thread_digit(weight, count, side.tiles * side.step)

    def loop(self, var: Expr, stop: int, *body: CStmt) -> CStmt:
        if not isinstance(var, Var):  # a single one
            return body[0] if len(body) == 1 else Scope(body=body)
        return Loop(
            var=var.name, start=const(0), stop=const(stop), step=const(1), body=body, dtype=INT32
        )

    def _scoped(self, *wishes: str) -> Var:
        name = self.ctx.namer.ours(*wishes)
        self.ctx.namer.release(name)
        return b.local(name)

    def _type(self, side: Operand) -> str:
        return self.ctx.target.dialect.types[side.dtype.name]

    def named(self, row: Expr, column: Expr) -> tuple[list[CStmt], Expr, Expr]:
        """`const int row = ..., col = ...;`, where the swizzle needs the row twice."""
        names = tuple(
            Declarator(name=self._scoped(name, f"{name}_of_tile").name, value=value)
            for name, value in (("row", row), ("col", column))
        )
        return [Local(dtype=INT32, names=names)], b.local(names[0].name), b.local(names[1].name)
