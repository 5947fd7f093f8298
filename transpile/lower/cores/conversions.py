"""What is said where no call of the vector unit converts one element type to another."""

from __future__ import annotations

from tile2c.transpile.diagnostics import InputError, Span
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.targets.cores import CoresTarget


def no_conversion(src: DType, dst: DType, target: CoresTarget, span: Span | None) -> InputError:
    """T2C540, with the types between that would do, or the type that the unit does not have."""
    pairs = target.conversions
    known = {name for pair in pairs for name in pair}
    foreign = [dtype.name for dtype in (src, dst) if dtype.name not in known]
    between = sorted(
        name for name in known if (src.name, name) in pairs and (name, dst.name) in pairs
    )
    reached = sorted(other for name, other in pairs if name == src.name)
    help: str | None
    if foreign:
        help = f"the vector unit of this target has no {' and no '.join(foreign)}: use another type"
    elif between:
        help = f"go through {' or '.join(between)}"
    else:
        help = f"from {src} it reaches {', '.join(reached)}" if reached else None
    return failure("T2C540", f"the vector unit does not convert {src} to {dst}", span, help=help)
