"""Buffers as the front end knows them: where they live, their shape, and accesses to them."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.record import record
from tile2c.transpile.stage.expressions import Expr, literal

Scope = Literal["global", "shared", "fragment", "local", "var", "barrier", "reducer"]


@record(eq=False, frozen=False)
class Buffer:
    """A named array. Identity matters: an alias is the same object."""

    name: str
    scope: Scope
    shape: tuple[Expr, ...]
    dtype: str
    span: Span | None  # of its declaration
    strides: tuple[Expr, ...] | None = None
    declaration: Expr | None = field(default=None)  # a parameter's annotation, canonical
    stored: object = None  # a `Stored` where the elements of a global tensor lie in another order
    used_in: int = 0  # the last launch that uses it, counted from 1

    @property
    def on_chip(self) -> bool:
        return self.scope != "global"

    def expr(self, span: Span | None = None) -> Expr:
        return Expr("name", self.name, span=span, dtype=self.dtype)


@record(eq=False)
class Piece:
    """One dimension of an access: a plain index (extent None), or `extent` elements from `lo`."""

    lo: Expr
    extent: Expr | None
    span: Span | None


@record(eq=False)
class Access:
    """`buffer[...]` with one piece for each dimension."""

    buffer: Buffer
    pieces: tuple[Piece, ...]
    span: Span | None

    @property
    def is_element(self) -> bool:
        """No slice in it: an element, or the address of a tile's first one."""
        return all(piece.extent is None for piece in self.pieces)


@record(eq=False)
class Region:
    """A value of the evaluator: an access with a slice in it, for tile statements."""

    access: Access


def whole(buffer: Buffer, span: Span | None) -> Access:
    """All of a buffer."""
    pieces = tuple(Piece(literal(0), extent.at(span), span) for extent in buffer.shape)
    return Access(buffer, pieces, span)
