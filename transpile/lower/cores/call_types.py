"""Whether the vector unit takes the elements of a call: the last look before a call is emitted."""

from __future__ import annotations

from collections.abc import Callable

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.lower.cores.plan import Loop, Step, TileRef, VectorCall, Word
from tile2c.transpile.targets.cores import CoresTarget


def check_call(
    step: Step, target: CoresTarget, dtype_of: Callable[[TileRef], str | None], span: Span | None
) -> None:
    """Refuses a call on elements that its unit has not. `dtype_of` is None for what is no tile."""
    if isinstance(step, Loop):
        for inner in step.body:
            if isinstance(inner, VectorCall):
                check_call(inner, target, dtype_of, span)
        return
    if not isinstance(step, VectorCall) or step.function not in target.arithmetic:
        return
    if any(isinstance(part, Word) for part in step.arguments):
        return  # conversions and masks have tables of their own
    refs = [step.dst, *(part for part in step.arguments if isinstance(part, TileRef))]
    found = [name for ref in refs if (name := dtype_of(ref)) is not None]
    if found and not any(target.can(step.function, name) for name in found):
        known = ", ".join(target.arithmetic[step.function])
        raise failure(
            "T2C541",
            f"the vector unit of {target.name} has {step.function} for {known}, not for {found[0]}",
            span,
            help="compute in float32: T.cast(x, T.float32), in a tile of T.float32",
        )
