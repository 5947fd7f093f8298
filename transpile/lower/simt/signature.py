"""What a kernel's head and arguments say: headers, roles of tensors, free sizes."""

from __future__ import annotations

from tile2c.transpile.ir.forms import Function, Param
from tile2c.transpile.lower.plan import ScalarArg, TensorArg
from tile2c.transpile.lower.simt.context import Context


def headers(ctx: Context, function: Function) -> tuple[str, ...]:
    """Headers of the vendor's toolkit that the text's types need."""
    used = [p.tensor.dtype for p in function.params if p.tensor is not None]
    used += [p.scalar.dtype for p in function.params if p.scalar is not None]
    used += [x.dtype for launch in function.launches for x in launch.buffers]
    table = ctx.target.dialect.headers
    found = [
        header for name in ("", *(dtype.name for dtype in used)) for header in table.get(name, ())
    ]
    return tuple(dict.fromkeys(found))


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
