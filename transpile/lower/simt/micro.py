"""Gemms in plain arithmetic: each thread sums up a small tile of C from operands in shared memory.

Right for every element type, shape and thread count; what the matrix unit cannot do comes here.
"""

from __future__ import annotations

from tile2c.transpile.ir.dtypes import FLOAT32, INT32, DType
from tile2c.transpile.ir.expr import Cast, Expr, const
from tile2c.transpile.ir.forms import Gemm, Region
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Assign, CStmt, Declarator, Element, Local, Loop
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.layouts import Digit
from tile2c.transpile.lower.simt.matrix import MicroPlan, matrix_dims
from tile2c.transpile.lower.simt.operand_ways import part_index
from tile2c.transpile.lower.simt.values import Place, shared_element, storage_subscripts


def micro_statements(
    ctx: Context, gemm: Gemm, plan: MicroPlan, names: tuple[str, str, str, str, str]
) -> tuple[CStmt, ...]:
    """The loop over K; sums in 16 bits are kept in float meanwhile."""
    return _Micro(ctx, gemm, plan, names).statements()


class _Micro:
    def __init__(
        self, ctx: Context, gemm: Gemm, plan: MicroPlan, names: tuple[str, str, str, str, str]
    ) -> None:
        self.ctx, self.gemm, self.plan = ctx, gemm, plan
        self.a, self.b, k, m, n = names
        self.k, self.m, self.n = b.local(k), b.local(m), b.local(n)
        kind = gemm.c.buffer.dtype
        self.narrow = kind.is_float and kind.bits < 32
        self.kind: DType = FLOAT32 if self.narrow else kind

    def statements(self) -> tuple[CStmt, ...]:
        plan = self.plan
        if not self.narrow:
            return (self._loop_k(self._sum()),)
        sums = self.ctx.namer.ours("sums", "sums_of_gemm")
        self.ctx.namer.release(sums)
        wide = Element(dtype=self.kind, array=sums, subscripts=(self.m, self.n))
        declared = Local(
            dtype=self.kind,
            const=False,
            names=(Declarator(name=sums, dims=(const(plan.rows), const(plan.columns))),),
            remark="in float until K is through",
        )
        own = self._sum()
        widened = Assign(target=wide, value=Cast(dtype=self.kind, a=own))
        rounded = Assign(target=own, value=Cast(dtype=own.dtype, a=wide))
        return (declared, self._each(widened), self._loop_k(wide), self._each(rounded))

    def _loop_k(self, total: Element) -> CStmt:
        plan = self.plan
        product = b.mul(self._factor("a"), self._factor("b"))
        add = Assign(target=total, value=product, op="+=")
        registers = Local(
            dtype=self.kind,
            const=False,
            names=(
                Declarator(name=self.a, dims=(const(plan.rows),)),
                Declarator(name=self.b, dims=(const(plan.columns),)),
            ),
        )
        gemm = self.gemm
        extent = gemm.a.shape[-2] if gemm.transpose_a else gemm.a.shape[-1]
        return Loop(
            var=self.k.name,
            start=const(0),
            stop=extent,
            step=const(1),
            dtype=INT32,
            body=(registers, self._load("a"), self._load("b"), self._each(add)),
        )

    def _factor(self, side: str) -> Element:
        name, at = (self.a, self.m) if side == "a" else (self.b, self.n)
        return Element(dtype=self.kind, array=name, subscripts=(at,))

    def _load(self, side: str) -> CStmt:
        gemm, plan = self.gemm, self.plan
        if side == "a":
            region, turned, at, count = gemm.a, gemm.transpose_a, self.m, plan.rows
            own = self.ctx.thread_digit(plan.threads_n, plan.threads_m)
            across = b.add(b.mul(at, const(plan.threads_m)), own)
        else:
            region, turned, at, count = gemm.b, not gemm.transpose_b, self.n, plan.columns
            own = self.ctx.thread_digit(1, plan.threads_n)
            across = b.add(b.mul(at, const(plan.threads_n)), own)
        value = Cast(dtype=self.kind, a=self._element(region, across, turned))
        load = Assign(target=self._factor(side), value=self._plain(value))
        return Loop(
            var=at.name,
            start=const(0),
            stop=const(count),
            step=const(1),
            dtype=INT32,
            unroll=count > 1,
            body=(load,),
        )

    def _plain(self, value: Cast) -> Expr:
        return value.a if value.a.dtype == value.dtype else value

    def _element(self, region: Region, across: Expr, k_in_rows: bool) -> Element:
        row, column = (self.k, across) if k_in_rows else (across, self.k)
        index = part_index(self.ctx, region, row, column)
        return shared_element(self.ctx, region.buffer, index, Place(values={}))

    def _sum(self) -> Element:
        """The thread's own sum at (m, n)."""
        region = self.gemm.c
        layout = self.ctx.layouts[region.buffer.name]
        row, column = matrix_dims(region)
        digits: dict[tuple[int, Digit], Expr] = {}
        for dim, digit in layout.value_digits():
            digits[(dim, digit)] = self.m if dim == row else self.n
        assert row != column
        return Element(
            dtype=region.buffer.dtype,
            array=region.buffer.name,
            subscripts=storage_subscripts(layout, digits),
        )

    def _each(self, body: CStmt) -> CStmt:
        """For every sum of the thread."""
        inner = Loop(
            var=self.n.name,
            start=const(0),
            stop=const(self.plan.columns),
            step=const(1),
            dtype=INT32,
            unroll=self.plan.columns > 1,
            body=(body,),
        )
        return Loop(
            var=self.m.name,
            start=const(0),
            stop=const(self.plan.rows),
            step=const(1),
            dtype=INT32,
            unroll=self.plan.rows > 1,
            body=(inner,),
        )
