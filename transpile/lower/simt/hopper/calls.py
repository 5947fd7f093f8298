"""The text's small device functions, as calls; asking for a call also asks for its helper."""

from __future__ import annotations

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Buffer, Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CCall, Do, Element
from tile2c.transpile.lower.simt.context import Context

STAGE = b.local("ring.stage")
PHASE = b.local("ring.phase")


def call(function: str, *args: Expr, template: tuple[Expr, ...] = ()) -> CCall:
    return CCall(dtype=INT32, function=function, args=args, template=template)


def do(function: str, *args: Expr, template: tuple[Expr, ...] = (), remark: str = "") -> Do:
    return Do(call=call(function, *args, template=template), remark=remark)


def barrier(name: str, stage: Expr) -> Element:
    """`full[ring.stage]`."""
    return Element(dtype=INT32, array=name, subscripts=(stage,))


def pin(ctx: Context, sums: Buffer) -> Do:
    """Uses of the sums stay on their side of this point."""
    ctx.need("unroll")
    if sums.dtype.name == "int32":
        ctx.need("pin", type="int", register="r")
    else:
        ctx.need("pin")
    return do("pin", b.local(sums.name))


def flipped(phase: Expr) -> Expr:
    return Binary(dtype=INT32, op="^", a=phase, b=const(1))


def ring_helpers(ctx: Context) -> None:
    """What every kernel with roles uses."""
    for name in (
        "shared_addr", "barrier_init", "barriers_visible", "barrier_expect", "barrier_wait", "ring",
        "tensor_map",
    ):  # fmt: skip
        ctx.need(name)


COORDINATES = ("x", "y", "z", "w", "v")


def coordinates(rank: int) -> tuple[str, str]:
    """Parameters `int x, int y` and the names alone."""
    names = COORDINATES[:rank]
    return ", ".join(f"int {name}" for name in names), ", ".join(f'"r"({name})' for name in names)


def slots(first: int, count: int) -> str:
    """`%3, %4`: operand numbers of an asm statement."""
    return ", ".join(f"%{first + k}" for k in range(count))
