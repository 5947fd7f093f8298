"""Calls of the program's own C functions: numbers by value, elements by address."""

from __future__ import annotations

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, Load
from tile2c.transpile.ir.forms import Foreign, Function, Pointer
from tile2c.transpile.lower.plan import Address, CCall, CStmt, Do
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.values import Place, convert, global_element
from tile2c.transpile.targets.simt import SimtTarget

_WRITTEN_FOR = ("cuda", "ppu", "corex")  # dialects that read CUDA


def lower_foreign(ctx: Context, stmt: Foreign, place: Place) -> CStmt:
    """The call as it stands in the program; a global element is not guarded (language.md 5.5)."""
    args = tuple(_argument(ctx, arg, place) for arg in stmt.args)
    call = CCall(dtype=INT32, function=stmt.name, args=args)
    return Do(call=call, comments=stmt.comments, remark=stmt.remark)


def _argument(ctx: Context, arg: Expr | Pointer, place: Place) -> Expr:
    if not isinstance(arg, Pointer):
        return convert(ctx, arg, place)
    buffer = arg.buffer
    if buffer.scope == "global":
        found: Expr = global_element(ctx, buffer, arg.index, place)
    else:
        found = convert(ctx, Load(dtype=buffer.dtype, buffer=buffer, index=arg.index), place)
    return Address(dtype=buffer.dtype, element=found)


def warn_of_sources(function: Function, target: SimtTarget, diagnostics: Diagnostics) -> None:
    """The program's text is CUDA in all likelihood."""
    if function.sources and target.family not in _WRITTEN_FOR:
        diagnostics.warning(
            "T2C568",
            f"the text of T.import_source goes into the {target.family} kernel as it is",
            function.span,
            help=f"check that {target.family}'s compiler reads it, or write what it does in the tile "
            "language",
        )
