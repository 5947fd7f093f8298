"""Products of few rows: blocks of a cluster share the rounds, and part 0 adds up their sums."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tile2c
from hopper_cases import TARGET, build, inputs, right, text_of
from tile2c.runtime.errors import KernelError

# Rounds are short, so that small operands have enough of them for every size of a cluster.
FEW: dict[str, object] = {
    "block_M": 16,
    "block_N": 64,
    "block_K": 16,
    "num_stages": 2,
    "threads": 128,
}
CASES = {
    "eight parts": (FEW, ((13, 72, 520),)),
    "the last parts have no rounds": (FEW, ((16, 64, 33 * 16 + 8),)),
    "four parts": (FEW, ((9, 8, 264),)),
    "two parts": (FEW, ((16, 136, 136),)),
    "one part": (FEW, ((16, 64, 72), (16, 64, 8))),
    "several tiles of rows": (FEW, ((40, 64, 520),)),
    "rows of a whole instruction": ({**FEW, "block_M": 64, "block_K": 32}, ((57, 72, 1032),)),
    "two warpgroups": ({**FEW, "block_M": 64, "block_N": 128, "threads": 256}, ((64, 136, 264),)),
    "operands turned": ({**FEW, "trans_A": True, "trans_B": True}, ((16, 72, 520),)),
    "sums stored as they are": ({**FEW, "out_dtype": "float32"}, ((16, 72, 520),)),
    "8-bit floats": (
        {**FEW, "block_K": 32, "dtype": "float8_e4m3fn", "trans_B": True}, ((16, 72, 1040),)
    ),
    "bytes": (
        {
            **FEW, "block_K": 32, "dtype": "int8", "acc_dtype": "int32", "out_dtype": "int32",
            "trans_B": True,
        },
        ((16, 72, 1040),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_right(tmp_path: Path, case: str) -> None:
    defines, sizes = CASES[case]
    text = build(tmp_path, "product", defines)
    assert "from_block" in text
    for m, n, k in sizes:
        assert right(tmp_path, "product", defines, inputs("product", defines, m, n, k)), (m, n, k)


def test_as_many_parts_as_pay_and_have_rounds(tmp_path: Path) -> None:
    build(tmp_path, "product", FEW)
    (entry,) = json.loads((tmp_path / "tile2c.json").read_text())["kernels"]
    direct = [x for x in entry["launch"] if x["when"] and x["when"].startswith("K % 8 == 0")]
    clusters = [x["cluster"] and x["cluster"][2] for x in direct]
    assert clusters == [8, 4, 2, None]
    assert [x["grid"][2] for x in direct] == ["8", "4", "2", "1"]


def test_the_sum_is_the_same_in_every_run(tmp_path: Path) -> None:
    build(tmp_path, "product", {**FEW, "out_dtype": "float32"})
    a, b = inputs("product", FEW, 16, 64, 520)
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET).values()
    first, again = (np.asarray(kernel(a, b)) for _ in range(2))
    assert first.tobytes() == again.tobytes()


@pytest.mark.parametrize("kernel", ["batched", "begun", "decayed"])
def test_what_does_more_than_add_up_has_one_part(tmp_path: Path, kernel: str) -> None:
    assert "from_block" not in build(tmp_path, kernel, {})


def test_sums_that_start_anew_have_one_part(tmp_path: Path) -> None:
    assert "from_block" not in build(tmp_path, "anew", {})
    a, b = inputs("anew", {}, 16, 64, 9 * 16 + 8)
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET).values()
    want = a[:, 8 * 16 :].astype(np.float64) @ b[8 * 16 :].astype(np.float64)
    np.testing.assert_allclose(np.asarray(kernel(a, b)), want, rtol=4e-3, atol=4e-2)


ORDERS = re.compile(
    r"(cluster_arrive|cluster_wait|mma_wait<0>|consumers_sync)\(\);|if \(part > 0\) return;"
)


def _mutants(text: str) -> Iterator[tuple[str, str]]:
    """Without each order of the exchange; both waits of a meeting, both halves of it."""
    lines = text.split("\n")
    first = next(k for k, x in enumerate(lines) if re.match("    (mma_wait<0>|consumers_sync)", x))
    last = next(k for k in range(first, len(lines)) if "// T.copy(C_local" in lines[k])
    for k in range(first, last):
        if ORDERS.search(lines[k]):
            yield lines[k].strip(), "\n".join([*lines[:k], *lines[k + 1 :]])
            if "cluster_arrive" in lines[k]:
                yield "a whole meeting", "\n".join([*lines[:k], *lines[k + 2 :]])
    turned = text.replace("other = 1;", "other = 2;")
    yield "a part left out", turned


@pytest.mark.parametrize("case", ["two parts", "two warpgroups"])
def test_whatever_is_taken_out_of_the_exchange_is_reported(tmp_path: Path, case: str) -> None:
    defines, _ = CASES[case]
    text = build(tmp_path, "product", defines)
    path, operands = text_of(tmp_path), inputs("product", defines, 16, 64, 136)
    assert right(tmp_path, "product", defines, operands)
    missed = []
    for what, mutant in _mutants(text):
        path.write_text(mutant)
        try:
            found = not right(tmp_path, "product", defines, operands)
        except KernelError:
            found = True
        if not found:
            missed.append(what)
    assert not missed


def test_weights_that_one_row_of_blocks_reads_are_the_first_to_leave_the_cache(
    tmp_path: Path,
) -> None:
    text = build(tmp_path, "product", FEW)
    words = " ".join(text.split())
    assert "bool once = gridDim.y == 1 && sizeof(B_shared[0]) * gridDim.x * ko_end <= " in words
    loads = re.findall(r"tma_load\(&(\w+)\[[^;]*?(, once)?\);", text)
    assert loads == [("A_shared", ""), ("B_shared", ", once")]
    assert "evict_first" not in build(tmp_path / "many", "product", {**FEW, "block_M": 128})
