"""Statements of the tile IR as the cube core takes them: with what it does on the way said."""

from __future__ import annotations

from tile2c.transpile.ir import forms
from tile2c.transpile.ir.expr import Buffer, Expr
from tile2c.transpile.ir.forms import Region
from tile2c.transpile.record import record


@record(kw_only=True)
class Begin(forms.Fill):
    """The sums of `dst` start anew, at 0 or at `bias`, one element a column."""

    bias: Region | None = None

    @property
    def sums(self) -> Buffer:
        return self.dst.buffer


@record(kw_only=True)
class Product(forms.Gemm):
    """A gemm whose sums start where `first` holds; they go on elsewhere."""

    first: Expr
    bias: str = ""  # the sums whose bias they start from


@record(kw_only=True)
class StoreSums(forms.Copy):
    """Sums to global memory: cut off below 0 if `relu`, added to what is there if `adds`."""

    relu: bool = False
    adds: bool = False
