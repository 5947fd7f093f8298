"""Every wait, arrival and fence of a kernel with roles is missed by the emulator when it is taken out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hopper_cases import build, inputs, mutants, right, text_of
from tile2c.runtime.errors import KernelError

# The rounds outnumber the stages, so that each stage is filled again and each order bites. With A turned,
# each warpgroup writes its sums where the other one's rows of A lie.
SMALL: dict[str, object] = {"block_M": 64, "block_N": 64, "block_K": 128}
CASES = {
    "two warpgroups": (
        "product",
        {**SMALL, "block_M": 128, "threads": 256, "num_stages": 2, "trans_A": True},
    ),
    "one warpgroup": ("product", {**SMALL, "num_stages": 3}),
    "sums between products": ("decayed", {"block_K": 128}),
    "few rows": ("product", {**SMALL, "block_M": 16, "num_stages": 2, "block_N": 192}),
    "8-bit floats": (
        "product",
        {
            "block_M": 128, "block_N": 128, "block_K": 256, "threads": 256, "num_stages": 2,
            "dtype": "float8_e4m3fn", "trans_B": True,
        },
    ),
}  # fmt: skip


def reported(
    folder: Path, kernel: str, defines: dict[str, object], sizes: tuple[int, int, int]
) -> bool:
    """Whether a check finds something, or a number is wrong."""
    try:
        return not right(folder, kernel, defines, inputs(kernel, defines, *sizes))
    except KernelError:
        return True


@pytest.mark.parametrize("case", CASES)
def test_whatever_is_taken_out_is_reported(tmp_path: Path, case: str) -> None:
    kernel, defines = CASES[case]
    text = build(tmp_path, kernel, defines)
    sizes = [(72, 64, 624)]
    if "for (int tile = " in text:
        # A block takes a second tile, which starts in the middle of the ring.
        sizes = [(392, 64, 368)]
    elif "cluster_wait" in text:  # as many rounds as two blocks share, then one block alone
        sizes = [(72, 64, 8 * int(str(defines["block_K"])) - 16), *sizes]
    assert not any(reported(tmp_path, kernel, defines, size) for size in sizes)
    path, missed = text_of(tmp_path), []
    for what, mutant in mutants(text):
        path.write_text(mutant)
        if not any(reported(tmp_path, kernel, defines, size) for size in sizes):
            missed.append(what)
    assert not missed
