"""Turns expressions of the tile IR into C: loads become elements, floor division finds its C form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from math import prod

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import FLOAT32, INT32, DType
from tile2c.transpile.ir.expr import (
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
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CCall, Element, Wide
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.functions import bits_as, lower_function
from tile2c.transpile.lower.simt.layouts import Digit, Layout
from tile2c.transpile.lower.simt.warp import lower_warp
from tile2c.transpile.record import record


@record(frozen=False)
class Place:
    """Where an expression is evaluated: a loop over a fragment layout, or plain code.

    `values` maps IR variables to C; `digits` the value digits of the loop's layout to their C
    variables, per loop variable; `loads` elements that were already read, as a vector, into an array.
    """

    values: Mapping[str, Expr]
    dims: Mapping[str, int] = field(default_factory=dict)  # loop variable -> dimension of `layout`
    layout: Layout | None = None
    digits: Mapping[tuple[int, Digit], Expr] = field(default_factory=dict)
    loads: dict[Load, Expr] = field(default_factory=dict)
    parts: Mapping[Expr, Expr] = field(default_factory=dict)  # index expressions that have a name
    guarded: tuple[Expr, ...] = ()  # conditions already tested around here (IR)
    once: tuple[Expr, ...] = ()  # C conditions of effects on memory: one of several replicas


def zero(dtype: DType) -> Const:
    return Const(dtype=dtype, value=0.0 if dtype.is_float else 0)


def convert(ctx: Context, expr: Expr, place: Place) -> Expr:
    """The C form of an IR expression."""
    if expr in place.parts:
        return place.parts[expr]
    if isinstance(expr, Const):
        return expr
    if isinstance(expr, Var):
        return place.values.get(expr.name, ctx.values.get(expr.name, expr))
    if isinstance(expr, Load):
        return _load(ctx, expr, place)
    if isinstance(expr, Binary):
        return _binary(ctx, expr, place)
    if isinstance(expr, Unary) and expr.op == "~" and expr.dtype.is_integer:
        inverted = replace(expr, a=convert(ctx, expr.a, place))
        if expr.dtype.bits >= 32:
            return inverted
        return Cast(dtype=expr.dtype, a=replace(inverted, dtype=INT32))
    if isinstance(expr, Reinterpret):
        return bits_as(ctx, replace(expr, a=convert(ctx, expr.a, place)))
    if isinstance(expr, Unary) and _bare(expr.dtype):
        negated = replace(expr, dtype=FLOAT32, a=_as_float(convert(ctx, expr.a, place)))
        return Cast(dtype=expr.dtype, a=negated)
    if isinstance(expr, Unary | Cast):
        return replace(expr, a=convert(ctx, expr.a, place))
    if isinstance(expr, Compare | Logical):
        a, y = convert(ctx, expr.a, place), convert(ctx, expr.b, place)
        return replace(expr, a=_as_float(a), b=_as_float(y))
    if isinstance(expr, Select):
        return replace(
            expr,
            condition=convert(ctx, expr.condition, place),
            a=convert(ctx, expr.a, place),
            b=convert(ctx, expr.b, place),
        )
    if isinstance(expr, Call):
        return _call(ctx, replace(expr, args=tuple(convert(ctx, arg, place) for arg in expr.args)))
    return expr  # a C form already


def _call(ctx: Context, expr: Call) -> Expr:
    """Functions that this dialect has only for float are taken there and back."""
    told = lower_warp(ctx, expr) or lower_function(ctx, expr)
    if told is not None:
        return told
    if expr.function == "clamp":
        ctx.need("clamp")
        return CCall(dtype=expr.dtype, function="clamp", args=expr.args)
    if expr.function == "sigmoid" and expr.dtype.is_float:
        return _sigmoid(ctx, expr)
    if ctx.between_products and (expr.function, expr.dtype.name) == ("exp2", "float32"):
        ctx.need("exp2_normal")
        return CCall(dtype=expr.dtype, function="exp2_normal", args=expr.args)
    functions = ctx.target.dialect.functions
    if (expr.function, expr.dtype.name) in functions or not expr.dtype.is_float:
        return expr
    from tile2c.transpile.ir.dtypes import FLOAT32

    if (expr.function, "float32") in functions and expr.dtype.bits < 32:
        wide = tuple(Cast(dtype=FLOAT32, a=arg) for arg in expr.args)
        return Cast(dtype=expr.dtype, a=replace(expr, dtype=FLOAT32, args=wide))
    raise failure(
        "T2C501",
        f"{expr.function} of {expr.dtype} is not available for {ctx.target.name}",
        expr.span,
    )


def _sigmoid(ctx: Context, expr: Call) -> Expr:
    """No dialect has it: a helper of float and of double, which narrow types are widened for."""
    from tile2c.transpile.ir.dtypes import FLOAT32, FLOAT64

    wide = FLOAT64 if expr.dtype == FLOAT64 else FLOAT32
    dialect = ctx.target.dialect
    ctx.need(
        "sigmoid",
        ctype=dialect.types[wide.name],
        one="1.0" if wide == FLOAT64 else "1.f",
        exp=dialect.functions["exp", wide.name],
    )
    (arg,) = (x if x.dtype == wide else Cast(dtype=wide, a=x) for x in expr.args)
    found = CCall(dtype=wide, function="sigmoid", args=(arg,))
    return found if expr.dtype == wide else Cast(dtype=expr.dtype, a=found)


def _binary(ctx: Context, expr: Binary, place: Place) -> Expr:
    a, y = convert(ctx, expr.a, place), convert(ctx, expr.b, place)
    if expr.op in ("//", "%", "ceildiv") and expr.dtype.is_integer:
        plain = ctx.facts.non_negative(expr.a) and ctx.facts.non_negative(
            expr.b
        )  # 0 has no meaning
        if plain:
            return {"//": b.div, "%": b.mod, "ceildiv": b.ceil_div}[expr.op](a, y)
        helper = {"//": "floor_div", "%": "floor_mod", "ceildiv": "ceil_div"}[expr.op]
        ctx.need(helper)
        return CCall(dtype=expr.dtype, function=helper, args=(a, y))
    if expr.dtype == INT32 and (b.literal(a, 0) or b.literal(y, 0)) and expr.op in ("+", "*"):
        return b.add(a, y) if expr.op == "+" else b.mul(a, y)  # a place that starts at nothing
    if expr.op == "/" and _divides_many(ctx, expr, place):
        ctx.need("divided")
        return CCall(dtype=expr.dtype, function="divided", args=(a, y))
    if _bare(expr.dtype):
        wide = replace(expr, dtype=FLOAT32, a=_as_float(a), b=_as_float(y))
        return Cast(dtype=expr.dtype, a=wide)
    found = replace(expr, a=a, b=y)
    if expr.op == "<<" and expr.dtype.is_integer and expr.dtype.bits < 32:
        return Cast(dtype=expr.dtype, a=replace(found, dtype=INT32))  # C shifts in 32 bits
    return found


def _bare(dtype: DType) -> bool:
    """Whether C has no operators for the type: floats of 8 bits are taken as float there and back."""
    return dtype.is_float and dtype.bits == 8


_EXACT = 8  # whole numbers up to here are numbers of every such type


def _as_float(value: Expr) -> Expr:
    if not _bare(value.dtype):
        return value
    if isinstance(value, Const) and float(value.value) in range(-_EXACT, _EXACT + 1):
        return Const(dtype=FLOAT32, value=float(value.value))
    return Cast(dtype=FLOAT32, a=value)


_MANY = 4  # quotients that are worth a reciprocal


def _divides_many(ctx: Context, expr: Binary, place: Place) -> bool:
    """Whether a thread divides several elements by one and the same float, which NVIDIA's compiler
    would do one after the other: its division is a sequence with a branch."""
    if not ctx.target.name.startswith("cuda:") or expr.dtype.name != "float32":
        return False
    if place.layout is None or isinstance(expr.b, Const):
        return False
    names = {part.name for part in b.walk(expr.b) if isinstance(part, Var)}
    if not names <= set(place.dims):
        return False  # it may depend on anything
    own = {place.dims[name] for name in names}
    alike = [digit.extent for dim, digit in place.layout.value_digits() if dim not in own]
    return prod(alike) >= _MANY


def _load(ctx: Context, load: Load, place: Place) -> Expr:
    ready = place.loads.get(load)
    if ready is not None:
        return ready
    match load.buffer.scope:
        case "variable":
            return Var(dtype=load.dtype, name=load.buffer.name, kind="temporary")
        case "fragment":
            return fragment_element(ctx, load.buffer, load.index, place)
        case "shared":
            return shared_element(ctx, load.buffer, load.index, place)
        case "local":
            subscripts = tuple(convert(ctx, part, place) for part in load.index)
            return Element(dtype=load.dtype, array=load.buffer.name, subscripts=subscripts)
        case "global":
            element = global_element(ctx, load.buffer, load.index, place)
            checks = guards(ctx, load.buffer, load.index, place)
            if not checks:
                return element
            condition = b.both([convert(ctx, check, place) for check in checks])
            return Select(dtype=load.dtype, condition=condition, a=element, b=zero(load.dtype))
        case "barrier":
            raise AssertionError("a barrier has no elements to read")


def guards(ctx: Context, buffer: Buffer, index: tuple[Expr, ...], place: Place) -> list[Expr]:
    """The conditions (IR) under which the access is inside, less those proven or already tested."""
    found: list[Expr] = []
    for part, extent in zip(index, buffer.shape, strict=True):
        if not ctx.facts.non_negative(part):
            found.append(b.compare(">=", part, const(0)))
        if not ctx.facts.less(part, extent):
            found.append(b.less(part, extent))
    return [check for check in found if check not in place.guarded]


def offset(ctx: Context, buffer: Buffer, index: tuple[Expr, ...], place: Place) -> Expr:
    """The element's offset from the tensor's start, in elements; 64 bits where it may need them."""
    parts = [convert(ctx, part, place) for part in index]
    wide = ctx.wide(buffer)
    if buffer.strides is None:  # row after row: (i * columns + j) * depth + k
        total: Expr = const(0)
        for position, (part, extent) in enumerate(zip(parts, buffer.shape, strict=True)):
            if position:
                total = b.mul(total, b.in_words(extent))
            if wide and b.literal(total, 0) and position < len(parts) - 1:
                part = part if b.literal(part, 0) else Wide(dtype=part.dtype, a=part)
            total = b.add(total, part)
        return total
    total = const(0)
    for position, (part, stride) in enumerate(zip(parts, ctx.pitch(buffer), strict=True)):
        last = position == len(parts) - 1
        if wide and not last and not b.literal(part, 0):
            part = Wide(dtype=part.dtype, a=part)
        total = b.add(total, b.times(part, b.in_words(stride)))
    return total


def global_element(ctx: Context, buffer: Buffer, index: tuple[Expr, ...], place: Place) -> Element:
    where = offset(ctx, buffer, index, place)
    return Element(dtype=buffer.dtype, array=buffer.name, subscripts=(where,))


def shared_element(
    ctx: Context, buffer: Buffer, index: tuple[Expr, ...], place: Place, *, whole: bool = False
) -> Element:
    """`A_shared[slot][i][A_col(i, k)]`: the tile's layout is said by its function, once.

    `whole`: the row is surely a multiple of the layout's group.
    """
    subscripts = [convert(ctx, part, place) for part in index]
    layout = ctx.shared.get(buffer.name)
    if layout is not None and layout.group > 1:
        row, column = subscripts[-2], subscripts[-1]
        place_of = CCall(dtype=column.dtype, function=layout.function, args=(column,))
        together = const(layout.group)
        inside = const(0) if whole else b.mod(row, together)
        subscripts[-2:] = [b.div(row, together), place_of, inside]
    elif layout is not None and layout.swizzled:
        row, column = subscripts[-2], subscripts[-1]
        if layout.slab:
            width = const(layout.slab)
            subscripts[-2:] = [b.div(column, width), row, column]
            column = b.mod(column, width)
        subscripts[-1] = CCall(dtype=column.dtype, function=layout.function, args=(row, column))
    if buffer.name in ctx.ring:
        ring = ctx.ring[buffer.name]
        if ring.depth > 1:
            subscripts.insert(0, ring.slot)
    return Element(dtype=buffer.dtype, array=buffer.name, subscripts=tuple(subscripts))


def fragment_element(
    ctx: Context, buffer: Buffer, index: tuple[Expr, ...], place: Place
) -> Element:
    """The thread's own copy of a fragment's element, in a loop over a layout that owns it."""
    layout = ctx.layouts[buffer.name]
    digits: dict[tuple[int, Digit], Expr] = {}
    for dim, part in enumerate(index):
        digits.update(_digit_values(ctx, buffer, layout, dim, part, place))
    return Element(
        dtype=buffer.dtype, array=buffer.name, subscripts=storage_subscripts(layout, digits)
    )


def storage_subscripts(
    layout: Layout, digits: Mapping[tuple[int, Digit], Expr]
) -> tuple[Expr, ...]:
    """One subscript for each storage axis, from the values of the layout's value digits.

    A thread's only element is a plain variable.
    """
    if layout.scalar:
        return ()
    subscripts = []
    for axis in layout.axes:
        inside = [
            (digit.weight, value)
            for (_, digit), value in digits.items()
            if axis.weight <= digit.weight < axis.weight * max(axis.extent, 1)
        ]
        inside.sort(key=lambda pair: -pair[0])
        terms = [b.mul(value, const(weight // axis.weight)) for weight, value in inside]
        subscripts.append(b.add(*terms) if terms else const(0))
    return tuple(subscripts)


def _digit_values(
    ctx: Context, buffer: Buffer, layout: Layout, dim: int, part: Expr, place: Place
) -> dict[tuple[int, Digit], Expr]:
    """C values of the value digits of one fragment dimension, indexed by `part`."""
    own = [digit for digit in layout.dims[dim] if digit.extent > 1]
    if not own:
        return {}
    if layout.shape[dim] == 1 and b.known(part) == 0:  # one element, padded over many threads
        return {(dim, digit): const(0) for digit in own if digit.holder == "value"}
    if isinstance(part, Var) and part.name in place.dims and place.layout is not None:
        loop_dim = place.dims[part.name]
        theirs = [digit for digit in place.layout.dims[loop_dim] if digit.extent > 1]
        if [digit.owner() for digit in own] == [digit.owner() for digit in theirs]:
            return {
                (dim, mine): place.digits[(loop_dim, other)]
                for mine, other in zip(own, theirs, strict=True)
                if mine.holder == "value"
            }
    if len(own) == 1 and own[0].holder == "value":  # the thread has them all
        return {(dim, own[0]): convert(ctx, part, place)}
    raise failure(
        "T2C503",
        f"{buffer.name} is held by other threads than this loop gives its elements to",
        part.span or buffer.span,
        help="index every fragment of the loop with its own loop variables, "
        "or pass the values through a shared tile",
    )
