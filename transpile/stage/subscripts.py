"""Subscripts: items of host containers, elements and regions of buffers."""

from __future__ import annotations

import ast
from dataclasses import replace

from tile2c.transpile.record import record
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Access, Buffer, Piece, Region
from tile2c.transpile.stage.evaluate import Evaluator
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.linear import extent as extent_of
from tile2c.transpile.stage.linear import number
from tile2c.transpile.stage.state import is_variable
from tile2c.transpile.stage.values import (
    Foreign,
    LanguageName,
    Unknown,
    Value,
)


@record(frozen=False)
class Subscripts(Evaluator):
    """Adds subscripts to the evaluator."""

    def _eval_Subscript(self, node: ast.Subscript) -> Value:
        owner = self.evaluate(node.value)
        if isinstance(owner, Buffer):
            access = self.access(owner, node)
            return self.read(access, node) if access.is_element else Region(access)
        if isinstance(owner, LanguageName):
            return self.language_subscript(owner, node)
        if isinstance(owner, Unknown | Foreign):
            return (
                owner if isinstance(owner, Unknown) else Unknown(f"{owner.path} is not evaluated")
            )
        index = self.evaluate(node.slice)
        if isinstance(index, Unknown):
            return index
        self.known(index, node.slice, "this subscript")
        owner = self.known(owner, node.value, "this subscript")
        if isinstance(index, Expr):
            index = self.whole_number(index, node.slice, "an index into a Python container")
        if isinstance(owner, Expr) or not hasattr(owner, "__getitem__"):
            raise self.fail("T2C246", f"{self._quoted(node.value)} cannot be indexed", node.value)
        try:
            return owner[index]
        except (LookupError, TypeError, ValueError) as error:
            if not self.exact:
                return Unknown(f"it fails: {error}", self.span(node))
            raise self.fail("T2C112", f"this fails at build time: {error!r}", node) from None

    def _eval_Slice(self, node: ast.Slice) -> Value:
        parts = (
            self.evaluate(part) if part else None for part in (node.lower, node.upper, node.step)
        )
        values = [number(part) if isinstance(part, Expr) else part for part in parts]
        return slice(*values)

    def language_subscript(self, owner: LanguageName, node: ast.Subscript) -> Value:
        raise NotImplementedError

    def read(self, access: Access, node: ast.AST | None) -> Expr:
        """The element of `access`; it is an address too, for statements that take tiles."""
        args = self.element_args(access)
        expr = ex.compound(
            "index", "", args, self.span(node), dtype=access.buffer.dtype, device=True
        )
        return replace(expr, access=access)

    def element_args(self, access: Access) -> tuple[Expr, ...]:
        """The buffer and the indices with which the normal form names an element."""
        return (access.buffer.expr(), *(piece.lo for piece in access.pieces))

    def access(self, buffer: Buffer, node: ast.Subscript) -> Access:
        """`buffer[...]`, one piece a dimension, slices with their extents."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        values: list[tuple[Value, ast.expr | None]] = []
        for part in parts:
            if isinstance(part, ast.Slice):
                values.append((part, part))
                continue
            value = self.evaluate(part.value if isinstance(part, ast.Starred) else part)
            if isinstance(value, tuple | list):
                values += [(inner, None) for inner in value]
            else:
                values.append((value, part))
        rank = len(buffer.shape)
        if buffer.scope == "var" and len(values) == 1:
            return Access(buffer, (), self.span(node))
        if len(values) == 1 and values[0][0] is Ellipsis:
            values = [(slice(None), None)] * rank
        if len(values) != rank:
            raise self.fail(
                "T2C232",
                f"{buffer.name} has {rank} dimension{'s' * (rank != 1)} "
                f"({', '.join(ex.text(dim) for dim in buffer.shape)}) but gets {len(values)} "
                f"ind{'ex' if len(values) == 1 else 'ices'}",
                node,
                help=f"{buffer.name}[{', '.join('ijklmnop'[:rank])}]",
            )
        pieces = [self._piece(buffer, dim, value, at) for dim, (value, at) in enumerate(values)]
        return Access(buffer, tuple(pieces), self.span(node))

    def _piece(self, buffer: Buffer, dim: int, value: Value, node: ast.expr | None) -> Piece:
        span = self.span(node)
        if isinstance(value, ast.Slice):
            return self._slice_piece(buffer, dim, value)
        if isinstance(value, slice):
            if (value.start, value.stop, value.step) == (None, None, None):
                return Piece(ex.literal(0), buffer.shape[dim], span)
            lo, hi = value.start or 0, value.stop
            lo_expr = self.expression(lo, None)
            hi_expr = buffer.shape[dim] if hi is None else self.expression(hi, None)
            return Piece(lo_expr, extent_of(lo_expr, hi_expr, {}), span)
        if isinstance(value, Region | Buffer) and not is_variable(value):
            raise self.fail("T2C246", "an index is a number, not a buffer", node)
        if isinstance(value, str | float):
            raise self.fail("T2C246", f"an index is a whole number, not {value!r}", node)
        index = self.expression(value, node)
        known = number(index)
        if known is not None and known < 0:  # provably negative: it wraps
            index = ex.binary("+", buffer.shape[dim], index, span)
            if (total := number(index)) is not None:
                index = ex.literal(total, span)
        return Piece(index, None, span)

    def _slice_piece(self, buffer: Buffer, dim: int, node: ast.Slice) -> Piece:
        span = self.span(node)
        if node.step is not None and self.evaluate(node.step) != 1:
            raise self.fail("T2C214", "a region of a buffer has step 1", node.step)
        shape = buffer.shape[dim]
        lo = self.expression(self.evaluate(node.lower), node.lower) if node.lower else ex.literal(0)
        hi = self.expression(self.evaluate(node.upper), node.upper) if node.upper else shape
        known = number(hi)
        if node.upper is not None and known is not None and known < 0:
            hi = ex.binary("+", shape, hi, span)
        if ex.is_zero(lo):
            return Piece(lo, hi.at(span), span)
        return Piece(lo, extent_of(lo, hi, {}), span)
