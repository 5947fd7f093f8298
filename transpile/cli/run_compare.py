"""Compares a kernel's outputs with expected ones and tells the largest errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tile2c.transpile.record import record

if TYPE_CHECKING:
    import numpy as np

# Relative to the expected value, and to the root mean square of all expected values: sums of terms
# of both signs come out small while their rounding errors do not.
TOLERANCES: dict[str, float] = {
    "float64": 1e-10,
    "float32": 1e-4,
    "tfloat32": 5e-3,
    "float16": 5e-3,
    "bfloat16": 3e-2,
}
SMALL_FLOATS = 0.2  # fp8 and less: two or three bits
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

    def lines(self) -> Iterator[str]:
        """What a person reads; the first line stands alone."""
        shape = ", ".join(str(extent) for extent in self.shape)
        count = f"{self.wrong} elements differ" if self.wrong else "equal within the tolerance"
        limits = f"rtol {self.rtol:.2g}, atol {self.atol:.2g}"
        yield f"{self.name}[{shape}] {self.dtype}: {count} ({limits})"
        shown = self.worst if self.wrong else self.worst[:1]
        for index, line in enumerate(shown):
            yield f"    {'largest error' if index == 0 else '             '} {line}"


def compare(
    name: str,
    dtype: str,
    actual: np.ndarray[Any, Any],
    expected: np.ndarray[Any, Any],
    rtol: float | None,
    atol: float | None,
) -> Comparison:
    """Compares element by element; NaN equals NaN, infinities equal themselves."""
    import numpy as np

    got = actual.astype(np.float64) if _is_float(dtype) else actual
    want = np.asarray(expected)
    want = want.astype(np.float64) if _is_float(dtype) else want.astype(actual.dtype)
    if want.shape != got.shape:
        raise ValueError(f"{name} has shape {list(got.shape)}, expected is {list(want.shape)}")
    if _is_float(dtype):  # what the output's type cannot hold becomes infinite in it
        want = _rounded(want, actual.dtype)
    relative, absolute = _limits(dtype, want, rtol, atol)
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
        worst=tuple(_worst(error, got, want)),
        rtol=relative,
        atol=absolute,
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


def _limits(
    dtype: str, want: np.ndarray[Any, Any], rtol: float | None, atol: float | None
) -> tuple[float, float]:
    import numpy as np

    default = TOLERANCES.get(dtype, SMALL_FLOATS) if _is_float(dtype) else 0.0
    relative = default if rtol is None else rtol
    if atol is not None:
        return relative, atol
    finite = want[np.isfinite(want)] if _is_float(dtype) else want
    scale = float(np.sqrt(np.mean(np.square(finite.astype(np.float64))))) if finite.size else 0.0
    return relative, default * scale


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
