"""Division of many by one: where the helper stands for the operator, and that it rounds as that does."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

HELPER = Path(__file__).parents[2] / "templates/cuda/helpers/divided.j2"
AROUND = """#include <cmath>
#define __device__
{helper}
extern "C" void all(int n, const float* x, const float* y, float* z) {{
    for (int i = 0; i < n; ++i) z[i] = divided(x[i], y[i]);
}}
"""


@pytest.fixture(scope="module")
def helper(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("divided")
    (folder / "all.cpp").write_text(AROUND.format(helper=HELPER.read_text()))
    library = folder / "all.so"
    command = ["g++", "-O1", "-ffp-contract=off", "-shared", "-fPIC", str(folder / "all.cpp")]
    subprocess.run([*command, "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def quotients(helper: ctypes.CDLL, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What the helper makes of the pairs."""
    found = np.empty_like(x)
    pointers = [part.ctypes.data_as(ctypes.c_void_p) for part in (x, y, found)]
    helper.all(x.size, *pointers)
    return found


@pytest.mark.parametrize("reach", [1.0, 40.0, 62.0])
def test_it_rounds_as_the_operator(helper: ctypes.CDLL, reach: float) -> None:
    """`reach`: exponents of both, to both sides."""
    random = np.random.default_rng(int(reach))
    x, y = (
        (random.choice([-1.0, 1.0], 300_000) * np.exp2(random.uniform(-reach, reach, 300_000)))
        .astype(np.float32)
        for _ in range(2)
    )  # fmt: skip
    np.testing.assert_array_equal(quotients(helper, x, y), x / y)


def test_extremes_are_those_of_the_operator(helper: ctypes.CDLL) -> None:
    """Zeros with their signs, infinities, NaN, the smallest and the largest of divisors."""
    some = [0.0, 1.0, 3.0, np.inf, np.nan, 1e-45, 2.0**-126, 2.0**-120, 3.4e38, 2.0**127]
    values = np.array([*some, *(-x for x in some)], dtype=np.float32)
    x, y = (part.ravel().copy() for part in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        want = x / y
    found = quotients(helper, x, y)
    np.testing.assert_array_equal(found, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(want[known]))


def test_any_floats_are_neighbours_at_worst(helper: ctypes.CDLL) -> None:
    """All bit patterns: where operands are tiny, the next float to either side may come."""
    random = np.random.default_rng(0)
    x, y = (random.integers(0, 1 << 32, 300_000, np.uint32).view(np.float32) for _ in range(2))
    with np.errstate(all="ignore"):
        want = x / y
    found = quotients(helper, x, y)
    both = ~np.isnan(want)
    np.testing.assert_array_equal(np.isnan(found), ~both)
    with np.errstate(all="ignore"):
        near = (np.nextafter(want, np.float32(np.inf)), np.nextafter(want, np.float32(-np.inf)))
    alike = (found == want) | (found == near[0]) | (found == near[1])
    assert alike[both].all()
