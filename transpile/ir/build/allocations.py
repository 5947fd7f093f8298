"""Allocations: one storage for a name, wherever it stands; variables start anew where they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from tile2c.transpile.ir.build import conversions
from tile2c.transpile.ir.build.arguments import Arguments, static_shape, tuple_items
from tile2c.transpile.ir.build.context import Builder
from tile2c.transpile.ir.build.notes import Notes, with_notes
from tile2c.transpile.ir.dtypes import DTYPES
from tile2c.transpile.ir.expr import Buffer, Const, Expr
from tile2c.transpile.ir.forms import Declare, Stmt

if TYPE_CHECKING:
    from tile2c.transpile.ir.expr import Scope

ALLOCATIONS: dict[str, Scope] = {
    "alloc_shared": "shared",
    "alloc_fragment": "fragment",
    "alloc_local": "local",
    "alloc_global": "global",
    "alloc_var": "variable",
}


def allocate(b: Builder, name: str, node: cst.Call, scope: Scope, about: Notes) -> list[Stmt]:
    """Binds `name` to new storage. Arrays go to the launch; a variable becomes a statement."""
    if scope == "variable":
        return [_variable(b, name, node, about)]
    from tile2c.transpile.ir.build import arithmetic
    from tile2c.transpile.ir.build.expressions import expressions

    args = Arguments(b, node, f"T.alloc_{scope}")
    items = tuple_items(args.node_of("shape", 0))
    dtype = args.dtype("dtype", 1)
    args.text("scope", 2, "")
    args.finish()
    if scope == "global":
        shape = tuple(
            arithmetic.whole(b, extent, item, "an extent")
            for extent, item in zip(expressions(b, items), items, strict=True)
        )
    else:
        shape = tuple(
            conversions.settle(b, extent, item)
            for extent, item in zip(static_shape(b, items, name), items, strict=True)
        )
    if dtype.kind == "handle":
        b.fail("T2C240", f"{name} cannot hold pointers", node)
    buffer = Buffer(
        name=b.names.unique(name), scope=scope, shape=shape, dtype=dtype, span=about.span
    )
    buffer = with_notes(buffer, about)
    b.buffers.append(buffer)
    b.scopes.bind(name, buffer)
    return []


def _variable(b: Builder, name: str, node: cst.Call, about: Notes) -> Stmt:
    args = Arguments(b, node, "T.alloc_var")
    dtype = args.dtype("dtype", 0)
    init_node = args.find("init", 1)
    args.text("scope", 2, "local.var")
    args.finish()
    init: Expr = Const(dtype=dtype, value=_zero(dtype.name), span=about.span)
    if init_node is not None and not isinstance(init_node, cst.SimpleString):
        from tile2c.transpile.ir.build.expressions import expression

        init = conversions.convert(b, expression(b, init_node), dtype, init_node)
    buffer = Buffer(
        name=b.names.unique(name), scope="variable", shape=(), dtype=dtype, span=about.span
    )
    b.scopes.bind(name, buffer)
    if b.divergent:
        b.by_thread.add(buffer.name)
    return with_notes(Declare(buffer=buffer, init=init), about)


def _zero(dtype: str) -> int | float | bool:
    found = DTYPES[dtype]
    if found.kind == "bool":
        return False
    return 0.0 if found.is_float else 0
