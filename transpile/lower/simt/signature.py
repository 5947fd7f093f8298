"""What a kernel's head and arguments say: headers, roles of tensors, free sizes."""

from __future__ import annotations

from tile2c.transpile.ir.expr import Cast, Const
from tile2c.transpile.ir.forms import Function, Param
from tile2c.transpile.ir.walk import expressions, statements
from tile2c.transpile.ir.walk import parts as expression_parts
from tile2c.transpile.lower.plan import ScalarArg, TensorArg
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.uses import parts
from tile2c.transpile.targets.target import Dialect


def headers(ctx: Context, function: Function) -> tuple[str, ...]:
    """Headers of the vendor's toolkit that the text's types need."""
    table = ctx.target.dialect.headers
    found = [header for name in ("", *_types(function)) for header in table.get(name, ())]
    return tuple(dict.fromkeys(found))


def need_conversions(ctx: Context, body: object) -> None:
    """Conversions that the text calls, of types that the vendor's headers lack."""
    dialect = ctx.target.dialect
    if not dialect.declares:
        return
    texts = " ".join(str(value) for helper in ctx.helpers.values() for _, value in helper.fields)
    told = {
        (name, at)
        for name in dialect.declares
        for at in (0, 1)
        if _named(dialect, name, at) in texts
    }
    for part in parts(body):
        if isinstance(part, Cast):
            told |= {(part.a.dtype.name, 0), (part.dtype.name, 1)}
        elif isinstance(part, Const):
            told.add((part.dtype.name, 1))
    for name, at in sorted(told):
        if dialect.is_bits(name):
            ctx.need(dialect.declares[name][at], type=name)


def _named(dialect: Dialect, name: str, at: int) -> str:
    """The function that converts the type: to float (0), from it (1)."""
    return (dialect.from_float if at else dialect.to_float)[name]


def _types(function: Function) -> list[str]:
    used = [p.tensor.dtype for p in function.params if p.tensor is not None]
    used += [p.scalar.dtype for p in function.params if p.scalar is not None]
    used += [x.dtype for launch in function.launches for x in launch.buffers]
    used += [
        part.dtype
        for launch in function.launches
        for stmt in statements(launch.body)
        for expr in expressions(stmt)
        for part in expression_parts(expr)
        if isinstance(part, Cast)  # a type that only a conversion passes through
    ]
    return list(dict.fromkeys(dtype.name for dtype in used))


def argument(
    param: object, reads: set[str], writes: set[str], several: bool = False
) -> TensorArg | ScalarArg:

    assert isinstance(param, Param)
    if param.tensor is None:
        assert param.scalar is not None
        return ScalarArg(name=param.name, dtype=param.scalar.dtype)
    role = "in" if param.name not in writes else "inout" if param.name in reads else "out"
    return TensorArg(
        name=param.name,
        dtype=param.tensor.dtype,
        shape=param.tensor.shape,
        strides=param.tensor.strides,
        role="unused" if several and param.name not in reads | writes else role,  # type: ignore[arg-type]
    )


def size_note(function: Function) -> str:
    if not function.sizes:
        return ""
    names = [size.name for size in function.sizes]
    free = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{free} {'is' if len(names) == 1 else 'are'} free"
