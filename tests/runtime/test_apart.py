"""While memory is checked, tensors lie apart: an access past one is not inside its neighbour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import manifests
import numpy as np
import pytest
import tile2c
from tile2c.runtime.errors import AccessError

SHIFTED = manifests.ADD.replace("A[i] + B[i]", "A[i + 1] + B[i]")


def loaded(folder: Path, checks: str | None, text: str = manifests.ADD) -> Any:
    folder.mkdir(exist_ok=True)
    manifests.write(folder, manifests.add_entry())
    (folder / "add.cu").write_text(text)
    return tile2c.load(folder, backend="emulate", check=checks)["add"]


@pytest.mark.parametrize("checks", ["memory", "races,memory"])
def test_one_past_the_end_of_a_slice(tmp_path: Path, checks: str) -> None:
    whole = np.ones(3 * 200, np.float32)
    a, b, c = whole[:200], whole[200:400], whole[400:]
    with pytest.raises(AccessError, match=r"outside every tensor|past the end|outside"):
        loaded(tmp_path, checks, SHIFTED)(a, b, c, 1.0)
    loaded(tmp_path / "unchecked", "races", SHIFTED)(a, b, c, 1.0)


def test_results_come_back(tmp_path: Path) -> None:
    add = loaded(tmp_path, "races,memory")
    whole = np.arange(600, dtype=np.float32)
    a, b, c = whole[:200], whole[200:400], whole[400:]
    want = 2 * a + b
    add(a, b, c, 2.0)
    np.testing.assert_array_equal(c, want)
    np.testing.assert_array_equal(whole[:400], np.arange(400))
    np.testing.assert_array_equal(add(a, b, 2.0), want)


def test_tensors_that_are_one_memory_stay_so(tmp_path: Path) -> None:
    add = loaded(tmp_path, "memory")
    whole = np.arange(300, dtype=np.float32)
    np.testing.assert_array_equal(add(whole[100:], whole[:200], 2.0), 2 * whole[100:] + whole[:200])
    with pytest.raises(AccessError, match="writes 4 bytes of B, which is read-only"):
        add(np.ones(200, np.float32), whole[:200], whole[100:], 1.0)
    empty = np.empty(0, np.float32)
    add(empty, empty, empty, 1.0)


def test_an_address_keeps_what_conditions_ask_of_it(tmp_path: Path) -> None:
    entry = manifests.add_entry(requires=["A % 16 == 4"])
    manifests.write(tmp_path, entry)
    add = tile2c.load(tmp_path, backend="emulate", check="memory")["add"]
    place = np.zeros(300, np.float32)
    start = next(i for i in range(4) if (place.ctypes.data + 4 * i) % 16 == 4)
    a = place[start : start + 200]
    b = np.ones(200, np.float32)
    np.testing.assert_array_equal(add(a, b, 1.0), b)
    with pytest.raises(ValueError, match="needs A % 16 == 4"):
        add(place[start + 1 : start + 201], b, 1.0)
