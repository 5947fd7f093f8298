"""Block and thread indices as expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile2c.transpile.ir.build.context import Builder, Value
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Const, Var

if TYPE_CHECKING:
    import libcst as cst
    from tile2c.transpile.ir.build.arguments import Arguments

THREAD_NAMES = ("tx", "ty", "tz")


def thread_index(b: Builder, dim: int, name: str | None, node: cst.CSTNode) -> Var:
    """The thread's index along x, y or z (0, 1, 2); the first name given to it stays."""
    if not 0 <= dim < 3:
        b.fail("T2C242", f"there is no thread dimension {dim}", node)
    found = b.thread_vars.get(dim)
    if found is None:
        unique = b.names.unique(name) if name else b.names.made_up(THREAD_NAMES[dim])
        author = name if name and name != unique else None
        found = Var(dtype=INT32, name=unique, kind="thread", author=author, span=b.span(node))
        b.thread_vars[dim] = found
    return found


def thread_value(b: Builder, name: str, args: Arguments, node: cst.Call) -> Value | None:
    """What `T.get_thread_binding(0)` and its like stand for; None for any other function."""
    if name not in ("get_thread_binding", "get_thread_extent", "get_block_binding",
                    "get_block_extent"):  # fmt: skip
        return None
    dim = args.whole("dim", 0, 0)
    args.finish()
    match name:
        case "get_thread_binding":
            return Value(thread_index(b, dim, None, node))
        case "get_thread_extent":
            extent = b.threads[dim] if 0 <= dim < 3 else 1
            return Value(Const(dtype=INT32, value=extent, span=b.span(node)), extent)
        case _:
            if not 0 <= dim < len(b.blocks):
                b.fail("T2C242", f"the grid has no dimension {dim}", node)
            return Value(b.blocks[dim] if name == "get_block_binding" else b.grid[dim])
