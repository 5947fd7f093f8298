"""T.reduce_*: which dimension goes, and what combines it.

reads   `forms.Reduce`        writes  vector calls
"""

from __future__ import annotations

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms
from tile2c.transpile.lower.cores.context import Context
from tile2c.transpile.lower.cores.local_copies import whole_shape
from tile2c.transpile.lower.cores.pooled_reductions import PooledReduction
from tile2c.transpile.lower.cores.reductions import Reduction
from tile2c.transpile.lower.cores.units import calls_of

_WORDS = {"sum": "Sum", "abssum": "Sum", "max": "Max", "absmax": "Max", "min": "Min"}


def lower_reduce(stmt: forms.Reduce, context: Context) -> None:
    """One reduction, in the destination's element type."""
    source = context.layouts[stmt.src.buffer.name]
    target = context.layouts[stmt.dst.buffer.name]
    shape, src = whole_shape(stmt.src, source, context)
    _, dst = whole_shape(stmt.dst, target, context)
    calls = calls_of(context.tiles, shape, context.emit)
    dims = [dim for dim, part in enumerate(stmt.src.ranges) if not part.point]
    over = dims[stmt.dim]
    kept = [dim for dim in source.kept if dim in dims]
    kind = PooledReduction if context.target.vectors == "counts" else Reduction
    reduction = kind(stmt, context, calls, _WORDS[stmt.op], dst)
    if over not in kept:  # a dimension of extent 1: nothing to combine
        reduction.single(dst, src)
    elif over == kept[-1]:
        reduction.rows(dst, src)
    elif over == kept[0]:
        reduction.columns(dst, src, source.weight(over), int(source.extents[0]))
    else:
        raise failure(
            "T2C549",
            f"a reduction over the middle dimension of {source.buffer.name} is not lowered",
            stmt.span,
            help="reduce over the first or the last dimension",
        )
