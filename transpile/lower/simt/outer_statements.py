"""The statements of a block outside its parallel loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile2c.transpile.ir.forms import For, Gemm, If, Pipelined, Stmt, While


def walk(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """Statements and those inside them, but not the bodies of parallel loops."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, For | Pipelined | While):
            yield from walk(stmt.body)
        elif isinstance(stmt, If):
            yield from walk(stmt.then)
            yield from walk(stmt.orelse)


def gemms(body: Sequence[Stmt]) -> list[Gemm]:
    """Every gemm of the block, in order."""
    return [stmt for stmt in walk(body) if isinstance(stmt, Gemm)]
