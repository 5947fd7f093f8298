"""Compares a kernel's outputs with expected ones and tells the largest errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tile2c.transpile.record import record

if TYPE_CHECKING:
    import numpy as np
    from tile2c.transpile.cli.run_roundings import Roundings

# Sums in another order, and functions that hardware approximates, relative to the root mean square
# of an output: sums of terms of both signs come out small while their rounding errors do not. Of
# float32 that is some thousand times the rounding of one number.
WIDE: dict[str, float] = {"float64": 1e-10}
SUMS = 1e-4
# Bits of a type's mantissa: from one value to the next it is 2 to the power of minus that.
SMALL_PRODUCTS = "sums of 8-bit floats"  # matrix units keep few bits of them, and leave some out
BITS: dict[str, int] = {
    "float32": 23,
    SMALL_PRODUCTS: 10,
    "tfloat32": 10,
    "float16": 10,
    "bfloat16": 7,
    "float8_e3m4": 4,
    "float8_e4m3fn": 3,
    "float8_e4m3fnuz": 3,
    "float8_e5m2": 2,
    "float8_e5m2fnuz": 2,
    "float4_e2m1fn": 1,
    "float8_e8m0fnu": 0,
}
SHOWN = 5


@record
class Comparison:
    """One output beside what it should be."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    wrong: int  # elements past the tolerance
    worst: tuple[str, ...]  # the largest errors, in words
    rtol: float
    atol: float
    set_by: str | None = None  # the type that the tolerance follows from; None where it is given

    def lines(self) -> Iterator[str]:
        """What a person reads; the first line stands alone."""
        shape = ", ".join(str(extent) for extent in self.shape)
        count = f"{self.wrong} elements differ" if self.wrong else "equal within the tolerance"
        by = "" if self.set_by is None else f", set by {self.set_by}"
        limits = f"rtol {self.rtol:.2g}, atol {self.atol:.2g}{by}"
        yield f"{self.name}[{shape}] {self.dtype}: {count} ({limits})"
        shown = self.worst if self.wrong else self.worst[:1] or ("0",)
        for index, line in enumerate(shown):
            yield f"    {'largest error' if index == 0 else '             '} {line}"


def compare(
    name: str,
    dtype: str,
    actual: np.ndarray[Any, Any],
    expected: np.ndarray[Any, Any],
    rtol: float | None,
    atol: float | None,
    came: Roundings | None = None,
) -> Comparison:
    """Compares element by element; NaN equals NaN, infinities equal themselves.

    `came` tells in which types the values were on their way; without it, in the output's own.
    """
    import numpy as np

    got = actual.astype(np.float64) if _is_float(dtype) else actual
    want = np.asarray(expected)
    want = want.astype(np.float64) if _is_float(dtype) else want.astype(actual.dtype)
    if want.shape != got.shape:
        raise ValueError(f"{name} has shape {list(got.shape)}, expected is {list(want.shape)}")
    if _is_float(dtype):  # what the output's type cannot hold becomes infinite in it
        want = _rounded(want, actual.dtype)
    limits = _limits(dtype, want, came) if _is_float(dtype) else Limits(0.0, 0.0, None)
    relative = limits.rtol if rtol is None else rtol
    absolute = limits.atol if atol is None else atol
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.float64) - want.astype(np.float64))
    same = (got == want) | ((got != got) & (want != want))
    error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
    with np.errstate(invalid="ignore"):
        limit = absolute + relative * np.abs(want.astype(np.float64))
        wrong = error > np.where(np.isfinite(limit), limit, 0.0)
    return Comparison(
        name=name,
        dtype=dtype,
        shape=tuple(actual.shape),
        wrong=int(wrong.sum()),
        worst=tuple(_worst(np.where(wrong, error, 0.0) if wrong.any() else error, got, want)),
        rtol=relative,
        atol=absolute,
        set_by=limits.set_by if rtol is None or atol is None else None,
    )


def _is_float(dtype: str) -> bool:
    return "float" in dtype


def _rounded(want: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        return (
            want.astype(np.float32).astype(dtype).astype(np.float64)
            if dtype != np.float64
            else want
        )


@record
class Limits:
    """How far right results may be from what is expected, and the type that says so."""

    rtol: float
    atol: float
    set_by: str | None


def unit(dtype: str) -> float:
    """From 1 to the next value of a type; 0 for those that count as exact here."""
    return 2.0 ** -BITS[dtype] if dtype in BITS else 0.0


def _steps(dtype: str) -> float:
    """Two values further: a result may lie at either side of one. Those of 8 bits are far enough."""
    return unit(dtype) * (1 if BITS.get(dtype, 10) < BITS["bfloat16"] else 2)


def _earlier(dtype: str) -> float:
    """Relative to a typical result: sums and differences of values that are each a step off."""
    return _steps(dtype) * (1 if BITS.get(dtype, 10) < BITS["bfloat16"] else 2)


def _limits(dtype: str, want: np.ndarray[Any, Any], came: Roundings | None) -> Limits:
    """What follows from the types: of the sums, of the last rounding, of roundings before it."""
    import numpy as np

    finite = want[np.isfinite(want)]
    scale = float(np.sqrt(np.mean(np.square(finite.astype(np.float64))))) if finite.size else 0.0
    last = max(((came and came.last) or dtype, dtype), key=unit)
    before = dtype if came is None else came.before or dtype
    coarsest = max((last, before), key=unit)
    sums = WIDE.get(coarsest, SUMS)
    earlier = _earlier(before) if came is None or came.before is not None else 0.0
    smallest = _smallest(last) if last in BITS and last != "tfloat32" else 0.0
    return Limits(
        rtol=max(sums, _steps(coarsest)),
        atol=max(sums, earlier) * scale + smallest,
        set_by=coarsest,
    )


def _smallest(dtype: str) -> float:
    """The step between the smallest numbers of a type, where steps no longer shrink with them."""
    import ml_dtypes
    from tile2c.runtime.dtypes import numpy_dtype

    if numpy_dtype(dtype).kind in "iu":
        return 0.0
    return float(ml_dtypes.finfo(numpy_dtype(dtype)).smallest_subnormal)  # type: ignore[no-untyped-call]


def _worst(
    error: np.ndarray[Any, Any], got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]
) -> Iterator[str]:
    """The places with the largest errors, largest first."""
    import numpy as np

    flat = error.reshape(-1)
    order = np.argsort(-flat, kind="stable")[:SHOWN]
    for position in order:
        if flat[position] == 0:
            break
        index = ", ".join(str(int(i)) for i in np.unravel_index(position, error.shape))
        actual, expected = got.reshape(-1)[position], want.reshape(-1)[position]
        yield f"{flat[position]:.4g} at [{index}]: {actual:.6g} instead of {expected:.6g}"
