"""Every wait, arrival and fence of a kernel with roles is missed by the emulator when it is taken out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hopper_cases import build, inputs, right, text_of
from tile2c.runtime.errors import KernelError

ORDERS = (
    "__syncthreads", "barriers_visible", "barrier_wait", "barrier_expect", "barrier_arrive", "mma_begin",
    "mma_commit", "mma_wait", "consumers_sync", "publish_to_async", "warpgroup_sync", "tma_store_commit",
    "tma_store_wait_read", "ring.advance",
)  # fmt: skip
CALL = re.compile(rf"({'|'.join(map(re.escape, ORDERS))})(<\d+>)?\(")

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
}  # fmt: skip


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """(what is missing, the text without it), for the entry with roles."""
    lines = text.split("\n")
    first = next(k for k, line in enumerate(lines) if "__launch_bounds__" in line)
    last = next(k for k in range(first, len(lines)) if lines[k] == "}")
    for k in range(first, last):
        call = CALL.search(lines[k])
        if call is None or lines[k].strip().startswith("//"):
            continue
        without = lines[k][: call.start()] + ";"
        yield lines[k].strip(), "\n".join([*lines[:k], without, *lines[k + 1 :]])
        if call[2] == "<0>" and call[1] == "mma_wait":
            weak = lines[k].replace("<0>", "<1>")
            yield f"weaker {lines[k].strip()}", "\n".join([*lines[:k], weak, *lines[k + 1 :]])


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
    sizes = (72, 64, 616)
    text = build(tmp_path, kernel, defines)
    assert not reported(tmp_path, kernel, defines, sizes)
    path, missed = text_of(tmp_path), []
    for what, mutant in mutants(text):
        path.write_text(mutant)
        if not reported(tmp_path, kernel, defines, sizes):
            missed.append(what)
    assert not missed
