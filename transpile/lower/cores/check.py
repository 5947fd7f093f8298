"""Refuses what this planner cannot lower, each at its place, with what works instead.

reads   tile IR        writes  diagnostics
"""

from __future__ import annotations

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Buffer, Const, Expr, Var
from tile2c.transpile.targets.cores import CoresTarget
from tile2c.transpile.wording import listed

_WORKS = (
    "kernels of T.copy, T.fill, T.Parallel, T.reduce_*, T.cumsum and loops work here; "
    "keep this one on a cuda or hip target"
)


def check(function: forms.Function, target: CoresTarget, diagnostics: Diagnostics) -> None:
    """Adds an error for each statement, variable or element type that has no whole-tile form."""
    if len(function.launches) != 1:
        where = function.launches[1].span if len(function.launches) > 1 else function.span
        diagnostics.error(
            "T2C520",
            f"{function.name} has {len(function.launches)} T.Kernel blocks, but {target.name} "
            "takes one a function",
            where,
            help="put each T.Kernel into a prim_func of its own",
        )
        return
    launch = function.launches[0]
    for param in function.params:
        if param.scalar is not None and param.scalar.dtype.name not in target.dialect.types:
            message = f"{param.name} is {param.scalar.dtype}, which {target.name} does not have"
            diagnostics.error("T2C557", message, param.span or function.span)
    for buffer in launch.buffers:
        if buffer.scope == "global":
            diagnostics.error(
                "T2C567",
                f"{buffer.name} is memory that all blocks share, which kernels for {target.name} "
                "are not given yet",
                buffer.span,
                help="make it a parameter",
            )
        else:
            _check_buffer(buffer, target, diagnostics)
    threads = {var.name for var in launch.thread_vars}
    gemms = [s for s in walk.statements(launch.body) if isinstance(s, forms.Gemm)]
    sums = {gemm.c.buffer.name for gemm in gemms} if target.cube is not None else set()
    in_loops = {
        id(inner)
        for stmt in walk.statements(launch.body)
        if isinstance(stmt, forms.Parallel)
        for inner in walk.statements(stmt.body)
    }
    for stmt in walk.statements(launch.body):
        _check_statement(stmt, target, sums, id(stmt) in in_loops, diagnostics)
        for expr in walk.expressions(stmt):
            _check_values(expr, stmt, target, diagnostics)
            for var in walk.variables(expr):
                if var.kind == "thread" or var.name in threads:
                    _no_threads(var, stmt, target, diagnostics)


def _check_values(
    expr: Expr, stmt: forms.Stmt, target: CoresTarget, diagnostics: Diagnostics
) -> None:
    """Values on the way that no tile can hold."""
    known = {*target.dialect.types, "bool"}
    for part in walk.parts(expr):
        if part.dtype.name not in known and not isinstance(part, Const):
            diagnostics.error(
                "T2C522",
                f"this is {part.dtype}, which the vector unit of {target.name} does not take",
                part.span or stmt.span,
                help=_instead_of(part.dtype),
            )
            return


def _instead_of(dtype: DType) -> str:
    """What to write for values of a type that the vector unit does not take."""
    if dtype.is_float and dtype.bits < 16:
        return (
            f"pass this tensor as float16 and convert between it and {dtype} outside the kernel, "
            "or keep this kernel on a cuda or hip target"
        )
    if dtype.is_float:
        return "compute in float32: T.cast(x, T.float32)"
    return "compute in int32 or float32, and pass the tensor in that type"


def _check_buffer(buffer: Buffer, target: CoresTarget, diagnostics: Diagnostics) -> None:
    if buffer.scope in ("variable", "global"):
        return
    if buffer.scope == "local" and buffer.shape:
        diagnostics.error(
            "T2C521",
            f"{buffer.name} is an array of each thread, but a core of {target.name} has no threads",
            buffer.span,
            help="use T.alloc_fragment for a tile, or T.alloc_var for one number",
        )
    if buffer.dtype.name not in target.dialect.types or buffer.dtype.name in ("bool", "float64"):
        diagnostics.error(
            "T2C522",
            f"{buffer.name} holds {buffer.dtype}, which the vector unit of {target.name} "
            "does not take",
            buffer.span,
            help="float16, bfloat16, float32, int16 and int32 tiles work",
        )


def _check_statement(
    stmt: forms.Stmt,
    target: CoresTarget,
    sums: set[str],
    inside: bool,
    diagnostics: Diagnostics,
) -> None:
    """`inside`: of a T.Parallel, so that it becomes one of the whole tile."""
    if isinstance(stmt, forms.Gemm):
        if target.cube is not None or target.weights is not None:
            return
        diagnostics.error(
            "T2C523",
            f"T.gemm needs the cube core, but kernels for {target.name} use vector cores so far",
            stmt.span,
            help=_WORKS,
        )
    elif isinstance(stmt, forms.AtomicTile) and stmt.src.buffer.name in sums and stmt.op == "add":
        return  # the cube core adds its sums to a tensor
    elif isinstance(stmt, forms.Atomic | forms.AtomicTile):
        _check_atomic(stmt, target, inside, diagnostics)
    elif isinstance(stmt, forms.Foreign):
        diagnostics.error(
            "T2C502",
            f"{stmt.name} is foreign code of threads, which a core of {target.name} does not run",
            stmt.span,
            help=_WORKS,
        )
    elif isinstance(stmt, forms.Assert | forms.Print):
        what = "T.print" if isinstance(stmt, forms.Print) else "an assertion"
        diagnostics.error(
            "T2C502",
            f"{what} asks for single elements while the kernel runs, which a core of "
            f"{target.name} does not look at",
            stmt.span,
            help="take it out for this target; the emulator of a cuda target checks and prints",
        )
    elif isinstance(stmt, forms.Reduce) and stmt.op in ("bitand", "bitor", "bitxor"):
        diagnostics.error(
            "T2C526",
            f"the vector unit of {target.name} has no T.reduce_{stmt.op}",
            stmt.span,
            help="reduce_sum, reduce_max, reduce_min, reduce_abssum and reduce_absmax work",
        )
    elif (
        isinstance(stmt, forms.Reduce)
        and stmt.nan_propagate
        and stmt.op in ("max", "min", "absmax")
        and stmt.src.buffer.dtype.is_float
    ):
        diagnostics.error(
            "T2C526",
            f"the vector unit of {target.name} has no T.reduce_{stmt.op} that surely keeps NaN",
            stmt.span,
            help="leave out nan_propagate, if no NaN can be there",
        )


def _check_atomic(
    stmt: forms.Atomic | forms.AtomicTile,
    target: CoresTarget,
    inside: bool,
    diagnostics: Diagnostics,
) -> None:
    """One call adds a tile to a tensor; a T.Parallel whose iterations add becomes that."""
    buffer = stmt.buffer if isinstance(stmt, forms.Atomic) else stmt.dst.buffer
    known = target.arithmetic.get("AtomicAdd", ())
    if not known:
        only = "only the sums of a T.gemm" if target.cube is not None else "nothing"
        message = f"kernels for {target.name} add {only} to a tensor so far"
        tip = "let one block own each element it writes, or keep this one on a cuda or hip target"
    elif stmt.op != "add":
        message = f"{target.name} adds to a tensor in one step, but has no T.atomic_{stmt.op}"
        tip = "let one block own each element it writes, or keep this one on a cuda or hip target"
    elif buffer.scope != "global":
        message = f"{buffer.name} is memory of this block alone, and {target.name} adds to tensors"
        tip = f"add without an atomic, in T.Parallel: {buffer.name}[i] = {buffer.name}[i] + x[i]"
    elif buffer.dtype.name not in known:
        message = f"{target.name} adds {listed(known)} to a tensor, not {buffer.dtype}"
        tip = f"make {buffer.name} float32"
    elif isinstance(stmt, forms.AtomicTile):
        return
    elif not inside:
        message = (
            "each thread would add here, as often as the block has threads, and a core of "
            f"{target.name} has none"
        )
        tip = "to add once a block, put this under `for i in T.Parallel(1):`"
    elif stmt.result is not None:
        message = f"what was there before an addition is not known on {target.name}"
        tip = "leave out return_prev"
    else:
        return
    diagnostics.error("T2C525", message, stmt.span, help=tip)


def _no_threads(var: Var, stmt: forms.Stmt, target: CoresTarget, diagnostics: Diagnostics) -> None:
    diagnostics.error(
        "T2C527",
        f"{var.name} is a thread index, but a core of {target.name} has no threads: "
        "each statement handles its whole tile",
        var.span or stmt.span,
        help="write the statement as T.copy, T.Parallel or T.reduce_* over the tile",
    )
