"""Extents of tiles as numbers where the author wrote arithmetic of constants: block_K // 2.

reads   tile IR        writes  the same with a `Const` for each such extent of a tile, region or loop
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from tile2c.transpile.ir import forms
from tile2c.transpile.ir.expr import Buffer, Const, Expr, const
from tile2c.transpile.ir.forms import Range, Region, Stmt
from tile2c.transpile.lower.cores.layouts import constant_of


def fix_extents(launch: forms.Launch) -> forms.Launch:
    """The launch with its tiles, and all that is said of them, in numbers."""
    buffers = tuple(_buffer(buffer) for buffer in launch.buffers)
    return replace(launch, buffers=buffers, body=_visited(launch.body))


def _number(extent: Expr) -> Expr:
    value = None if isinstance(extent, Const) else constant_of(extent)
    return extent if value is None else const(value)


def _buffer(buffer: Buffer) -> Buffer:
    if buffer.scope == "global":
        return buffer
    shape = tuple(_number(extent) for extent in buffer.shape)
    return buffer if shape == buffer.shape else replace(buffer, shape=shape)


def _visited(node: Any) -> Any:
    """A statement, expression or region, or a tuple of them, with its tiles and extents changed."""
    if isinstance(node, tuple):
        parts = tuple(_visited(part) for part in node)
        return parts if any(a is not b for a, b in zip(parts, node, strict=True)) else node
    if isinstance(node, Buffer):
        return _buffer(node)
    if not isinstance(node, Stmt | Expr | Region | Range):
        return node
    changes = {}
    for item in fields(node):
        value = getattr(node, item.name)
        new = _visited(value)
        if isinstance(node, Range) and item.name == "extent":
            new = _number(new)
        if isinstance(node, forms.Parallel) and item.name == "extents":
            new = tuple(_number(extent) for extent in new)
        if new is not value:
            changes[item.name] = new
    return replace(node, **changes) if changes else node
