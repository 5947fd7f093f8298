"""The rules of the tile IR, checked: types agree, names are unique and in scope, regions inside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import assert_never, cast

from tile2c.transpile.ir import forms
from tile2c.transpile.ir.constants import constant_int, proven_equal
from tile2c.transpile.ir.dtypes import BOOL, DType
from tile2c.transpile.ir.expr import (
    AnyExpr,
    Binary,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Logical,
    Reinterpret,
    Select,
    Unary,
    Var,
    const,
)
from tile2c.transpile.ir.forms import AnyStmt, Function, Launch, Region, Stmt
from tile2c.transpile.ir.printer import expression_text, region_text, statement_text
from tile2c.transpile.ir.walk import children

WHOLE = ("//", "%", "truncdiv", "truncmod", "ceildiv")
BITS = ("&", "|", "^", "<<", ">>")


class VerifyError(AssertionError):
    """A pass made IR that breaks the rules: a bug, never a fault of the input."""


def verify(function: Function) -> None:
    """Raises `VerifyError` naming the node where the IR breaks its rules."""
    _Verifier().function(function)


class _Verifier:
    def __init__(self) -> None:
        self.defined: set[str] = set()  # every name ever defined
        self.variables: dict[str, Var] = {}  # in scope
        self.buffers: dict[str, Buffer] = {}  # in scope
        self.views: tuple[Buffer, ...] = ()  # tensors of the launch under other shapes
        self.loops: list[str] = []
        self.where = ""

    def check(self, good: bool, message: str) -> None:
        if not good:
            raise VerifyError(f"{self.where}: {message}" if self.where else message)

    # ---- names

    def define(self, name: str) -> None:
        self.check(name not in self.defined, f"{name} is defined twice")
        self.defined.add(name)

    def variable(self, var: Var, kind: str) -> None:
        self.define(var.name)
        self.check(var.kind == kind, f"{var.name} is a {var.kind}, not a {kind}")
        self.variables[var.name] = var

    def buffer(self, buffer: Buffer) -> None:
        self.define(buffer.name)
        for extent in buffer.shape:
            self.whole(extent)
            if buffer.scope not in ("global", "variable"):
                size = constant_int(extent)
                self.check(size is not None and size > 0, f"{buffer.name} has no fixed shape")
        self.check((buffer.scope == "variable") == (buffer.shape == ()), f"shape of {buffer.name}")
        if buffer.strides is not None:
            self.check(len(buffer.strides) == len(buffer.shape), f"strides of {buffer.name}")
        self.buffers[buffer.name] = buffer

    @contextmanager
    def scope(self) -> Iterator[None]:
        variables, buffers = dict(self.variables), dict(self.buffers)
        try:
            yield
        finally:
            self.variables, self.buffers = variables, buffers

    # ---- functions

    def function(self, function: Function) -> None:
        self.where = function.name
        for constant in function.constants:
            self.check(constant.name is not None, "a constant without a name")
            self.define(constant.name or "")
            self.expression(constant)
        for size in function.sizes:
            self.variable(size, "size")
        for param in function.params:
            kinds = (param.tensor is not None) + (param.scalar is not None)
            self.check(kinds == 1, f"parameter {param.name} is neither tensor nor scalar, or both")
            if param.scalar is not None:
                self.variable(param.scalar, "scalar")
        for param in function.params:
            if param.tensor is not None:
                self.check(param.tensor.scope == "global", f"{param.name} is not global")
                self.buffer(param.tensor)
        for assumption in function.assumptions:
            self.condition(assumption)
        self.check(bool(function.launches), "no launch")
        for launch in function.launches:
            with self.scope():
                self.launch(launch)

    def launch(self, launch: Launch) -> None:
        self.where = launch.quote or "launch"
        if launch.when is not None:
            self.condition(launch.when)
        for extent in launch.grid:
            self.whole(extent)
        self.check(1 <= len(launch.grid) <= 3, "the grid has 1 to 3 dimensions")
        self.check(len(launch.blocks) == len(launch.grid), "one block index for each dimension")
        x, y, z = launch.threads
        self.check(min(x, y, z) >= 1 and x * y * z <= 1024, f"{x * y * z} threads")
        for var in launch.blocks:
            self.variable(var, "block")
        for var in launch.thread_vars:
            self.variable(var, "thread")
        self.views = launch.views
        for view in launch.views:
            self.known(replace(view, shape=self.buffers[view.name].shape))
            for extent in view.shape:
                self.whole(extent)
        for buffer in launch.buffers:
            allowed = buffer.scope in ("shared", "fragment", "local")
            self.check(allowed, f"{buffer.name} is {buffer.scope}")
            self.buffer(buffer)
        for barriers in launch.barriers:
            one_each = barriers.buffer.shape == (const(len(barriers.counts)),)
            self.check(one_each, f"{barriers.buffer.name} has not one count for each barrier")
            self.buffer(barriers.buffer)
        self.body(launch.body)

    # ---- statements

    def body(self, body: tuple[Stmt, ...]) -> None:
        with self.scope():
            for stmt in body:
                self.where = statement_text(stmt)
                self.statement(stmt)

    def loop(self, kind: str, loop_vars: tuple[Var, ...], body: tuple[Stmt, ...]) -> None:
        with self.scope():
            for var in loop_vars:
                self.variable(var, "loop")
            self.loops.append(kind)
            self.body(body)
            self.loops.pop()

    def statement(self, stmt: Stmt) -> None:
        node = cast(AnyStmt, stmt)
        match node:
            case forms.Copy() | forms.AtomicTile():
                self.tile(node.src, node.dst)
                self.same_shape(node.src, node.dst)
            case forms.Fill():
                self.tile(node.dst)
                self.typed(node.value, node.dst.buffer.dtype)
            case forms.Gemm():
                self.gemm(node)
            case forms.Reduce():
                self.reduce(node)
            case forms.Scan():
                self.tile(node.src, node.dst)
                self.same_shape(node.src, node.dst)
                self.check(0 <= node.dim < len(node.src.shape), f"dimension {node.dim}")
            case forms.Parallel():
                self.check("parallel" not in self.loops, "T.Parallel inside T.Parallel")
                self.check(len(node.loop_vars) == len(node.extents) > 0, "one extent for each")
                for extent in node.extents:
                    self.whole(extent)
                self.loop("parallel", node.loop_vars, node.body)
            case forms.Atomic():
                self.place(node.buffer, node.index)
                self.check(node.buffer.scope in ("global", "shared"), "an atomic on private memory")
                self.typed(node.value, node.buffer.dtype)
                if node.result is not None:
                    self.check(node.result.dtype == node.buffer.dtype, "the old value's type")
                    self.variable(node.result, "temporary")
            case forms.Let():
                self.typed(node.value, node.var.dtype)
                self.variable(node.var, "temporary")
            case forms.Declare():
                self.check(node.buffer.scope == "variable", "only variables are declared")
                if node.init is not None:
                    self.typed(node.init, node.buffer.dtype)
                self.buffer(node.buffer)
            case forms.Store():
                self.place(node.buffer, node.index)
                self.typed(node.value, node.buffer.dtype)
            case forms.For() | forms.Pipelined():
                self.typed(node.start, node.var.dtype)
                self.typed(node.stop, node.var.dtype)
                self.whole(node.start)
                self.loop_rules(node)
                self.loop("serial", (node.var,), node.body)
            case forms.While():
                self.condition(node.condition)
                self.loop("serial", (), node.body)
            case forms.If():
                self.condition(node.condition)
                self.body(node.then)
                self.body(node.orelse)
            case forms.Jump():
                inside = bool(self.loops) and self.loops[-1] != "parallel"
                self.check(node.kind == "return" or inside, "a jump out of no serial loop")
            case forms.AuthorSync():
                self.check("parallel" not in self.loops, "a barrier inside T.Parallel")
            case forms.BulkCopy():
                self.tile(node.src, node.dst)
                self.same_shape(node.src, node.dst)
                sides = {node.src.buffer.scope, node.dst.buffer.scope}
                self.check(sides == {"global", "shared"}, "not between a tensor and shared memory")
                self.check(
                    (node.barrier is None) == (node.index is None), "a barrier without index"
                )
                if node.barrier is not None and node.index is not None:
                    self.barrier(node.barrier, node.index)
            case forms.ElementCopy():
                self.place(node.src, node.source)
                self.place(node.dst, node.target)
                self.check(node.src.dtype == node.dst.dtype, "a copy that converts")
                self.check(node.count > 0, f"{node.count} elements")
            case forms.BarrierArrive():
                self.barrier(node.barrier, node.index)
                if node.bytes is not None:
                    self.whole(node.bytes)
            case forms.BarrierWait():
                self.barrier(node.barrier, node.index)
                self.whole(node.parity)
            case forms.Hold():
                self.known(node.buffer)
                self.check(node.buffer.scope == "fragment", f"{node.buffer.name} is no fragment")
            case forms.Order() | forms.SetRegisters():
                self.check("parallel" not in self.loops, "an order inside T.Parallel")
            case forms.Assert():
                self.condition(node.condition)
            case forms.Foreign():
                for arg in node.args:
                    if isinstance(arg, forms.Pointer):
                        self.place(arg.buffer, arg.index)
                    else:
                        self.typed(arg, arg.dtype)
            case forms.Print():
                for part in node.index:
                    self.whole(part)
                self.typed(node.value, node.value.dtype)
            case _:
                assert_never(node)

    def barrier(self, barrier: Buffer, index: Expr) -> None:
        self.known(barrier)
        self.check(barrier.scope == "barrier", f"{barrier.name} is no barrier")
        self.whole(index)

    def loop_rules(self, node: forms.For | forms.Pipelined) -> None:
        if isinstance(node, forms.For):
            self.check(node.step != 0, "a step of 0")
            return
        self.check("parallel" not in self.loops, "a pipelined loop inside T.Parallel")
        stages = node.num_stages.value
        self.check(isinstance(stages, int) and stages >= 0, f"{stages} stages")

    def tile(self, *regions: Region) -> None:
        self.check("parallel" not in self.loops, "a tile statement inside T.Parallel")
        for region in regions:
            self.region(region)

    def region(self, region: Region) -> None:
        buffer = region.buffer
        self.known(buffer)
        self.check(buffer.scope != "variable", f"{buffer.name} is a variable")
        self.check(len(region.ranges) == len(buffer.shape), f"rank of {region_text(region)}")
        for part, size in zip(region.ranges, buffer.shape, strict=True):
            self.whole(part.start)
            self.whole(part.extent)
            extent, start, whole = map(constant_int, (part.extent, part.start, size))
            self.check(not part.point or extent == 1, "a plain index with an extent")
            if buffer.scope == "global":
                continue
            self.check(extent is not None and extent > 0, f"extent of {region_text(region)}")
            if extent is not None and start is not None and whole is not None:
                inside = 0 <= start and start + extent <= whole
                self.check(inside, f"{region_text(region)} is outside its buffer")

    def same_shape(self, src: Region, dst: Region) -> None:
        left, right = (
            [extent for extent in region.shape if constant_int(extent) != 1]
            for region in (src, dst)
        )
        good = len(left) == len(right) and all(map(proven_equal, left, right))
        self.check(good, f"shapes of {region_text(src)} and {region_text(dst)}")

    def gemm(self, node: forms.Gemm) -> None:
        self.tile(node.a, node.b, node.c)
        self.condition(node.clear)
        self.check(node.a.buffer.dtype == node.b.buffer.dtype, "operands of two types")
        self.check(node.c.buffer.scope == "fragment", "the result is not a fragment")
        shapes = [region.shape for region in (node.a, node.b, node.c)]
        for shape in shapes:
            leading = all(constant_int(extent) == 1 for extent in shape[:-2])
            self.check(len(shape) >= 2 and leading, "an operand is not a matrix")
        (m, k), (k_b, n), (m_c, n_c) = (shape[-2:] for shape in shapes)
        if node.transpose_a:
            m, k = k, m
        if node.transpose_b:
            k_b, n = n, k_b
        for one, other, letter in ((k, k_b, "K"), (m, m_c, "M"), (n, n_c, "N")):
            self.check(proven_equal(one, other), f"{letter} differs")

    def reduce(self, node: forms.Reduce) -> None:
        self.tile(node.src, node.dst)
        self.check(0 <= node.dim < len(node.src.shape), f"dimension {node.dim}")
        rest = [extent for dim, extent in enumerate(node.src.shape) if dim != node.dim]
        left, right = (
            [extent for extent in shape if constant_int(extent) != 1]
            for shape in (rest, node.dst.shape)
        )
        good = len(left) == len(right) and all(map(proven_equal, left, right))
        self.check(good, "the result has another shape")

    # ---- expressions

    def known(self, buffer: Buffer) -> None:
        found = self.buffers.get(buffer.name)
        self.check(found is not None, f"{buffer.name} is not in scope")
        same = found == buffer or buffer in self.views
        self.check(same, f"{buffer.name} is not the buffer of that name")

    def place(self, buffer: Buffer, index: tuple[Expr, ...]) -> None:
        self.known(buffer)
        self.check(len(index) == len(buffer.shape), f"{len(index)} indices of {buffer.name}")
        for part in index:
            self.whole(part)

    def typed(self, expr: Expr, dtype: DType) -> None:
        self.expression(expr)
        self.check(expr.dtype == dtype, f"{expression_text(expr)} is {expr.dtype}, not {dtype}")

    def whole(self, expr: Expr) -> None:
        self.expression(expr)
        self.check(expr.dtype.is_integer, f"{expression_text(expr)} is {expr.dtype}")

    def condition(self, expr: Expr) -> None:
        self.typed(expr, BOOL)

    def expression(self, expr: Expr) -> None:
        for child in children(expr):
            self.expression(child)
        fault = self.fault(expr)
        self.check(fault is None, f"{expression_text(expr)}: {fault}")

    def fault(self, expr: Expr) -> str | None:
        """What is wrong with a node whose children are right."""
        node = cast(AnyExpr, expr)
        match node:
            case Const():
                return _constant_fault(node)
            case Var():
                found = self.variables.get(node.name)
                return None if found == node else "not in scope, or of another type"
            case Load():
                self.place(node.buffer, node.index)
                return None if node.dtype == node.buffer.dtype else "type of its buffer"
            case Binary():
                return _binary_fault(node)
            case Unary():
                good = node.a.dtype == node.dtype and (node.op != "not" or node.dtype == BOOL)
                return None if good else "type of its operand"
            case Compare():
                good = node.a.dtype == node.b.dtype and node.dtype == BOOL
                return None if good else f"sides are {node.a.dtype} and {node.b.dtype}"
            case Logical():
                good = node.a.dtype == node.b.dtype == node.dtype == BOOL
                return None if good else "not all bool"
            case Select():
                good = node.condition.dtype == BOOL and node.a.dtype == node.b.dtype == node.dtype
                return None if good else f"sides are {node.a.dtype} and {node.b.dtype}"
            case Cast():
                good = node.a.dtype != node.dtype and node.dtype != BOOL
                return None if good else "a cast to its own type, or to bool"
            case Reinterpret():
                return None if node.a.dtype.bits == node.dtype.bits else "another width"
            case Call():
                return None
            case _:
                assert_never(node)


def _constant_fault(node: Const) -> str | None:
    if node.dtype == BOOL:
        return None if isinstance(node.value, bool) else "a bool that is a number"
    if isinstance(node.value, bool):
        return "a number that is a bool"
    if node.dtype.is_float:
        return None if isinstance(node.value, float) else "a float that is an integer"
    return None if isinstance(node.value, int) else "an integer that is a float"


def _binary_fault(node: Binary) -> str | None:
    if not node.a.dtype == node.b.dtype == node.dtype:
        return f"sides are {node.a.dtype} and {node.b.dtype}, the result {node.dtype}"
    if node.op == "/" and not node.dtype.is_float:
        return "`/` on integers"
    if node.op in WHOLE and not node.dtype.is_integer:
        return f"`{node.op}` on {node.dtype}"
    if node.op in BITS and node.dtype.is_float:
        return f"`{node.op}` on {node.dtype}"
    return None
