"""Clusters of two blocks that load what they have in common for each other: right, or reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tile2c
from hopper_cases import TARGET, build, expected, inputs, mutants, text_of
from tile2c.runtime.backends.emulate import EmulateSession
from tile2c.runtime.backends.protocol import LaunchCall, Module
from tile2c.runtime.errors import KernelError
from tile2c.transpile.lower.simt.hopper import launch

TWO: dict[str, object] = {
    "block_M": 128, "block_N": 128, "block_K": 64, "threads": 256, "num_stages": 2,
}  # fmt: skip
HALF = "rank * (128 / cluster_size)"
# what is multiplied, how the shared tile is cut, and sizes with tails: rounds outnumber the stages
CASES: dict[str, tuple[str, dict[str, object], str, tuple[int, int, int]]] = {
    "slabs": ("product", TWO, "slab * 64", (456, 136, 200)),
    "four slabs": ("product", {**TWO, "block_N": 256}, "slab * 64", (456, 264, 136)),
    "halves of rows": ("product", {**TWO, "trans_B": True}, HALF, (200, 264, 200)),
    "8-bit floats": (
        "product", {**TWO, "block_K": 128, "dtype": "float8_e4m3fn", "trans_B": True}, HALF,
        (456, 136, 400),
    ),
    "sums straight to a tensor": ("product", {**TWO, "out_dtype": "float32"}, "slab * 64", (456, 136, 136)),
    "a batch": ("batched", TWO, "rank * (block_M / cluster_size)", (200, 136, 136)),
}  # fmt: skip


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int] | None]:
    """What the launches of the test ask for."""
    seen: list[tuple[int, int, int] | None] = []
    plain = EmulateSession.launch

    def noted(self: EmulateSession, module: Module, call: LaunchCall) -> None:
        seen.append(call.cluster)
        plain(self, module, call)

    monkeypatch.setattr(EmulateSession, "launch", noted)
    return seen


def product(folder: Path, operands: list[Any], blocks: int) -> Any:
    """What the folder's kernel gives on a device of so many multiprocessors, checked."""
    (kernel,) = tile2c.load(folder, "emulate", target=TARGET, check="races,memory").values()
    kernel.backend.multiprocessors = blocks  # type: ignore[attr-defined]
    return np.asarray(kernel(*operands)).astype(np.float64)


@pytest.mark.parametrize("case", CASES)
def test_two_blocks_load_for_each_other(
    tmp_path: Path, case: str, launched: list[tuple[int, int, int] | None]
) -> None:
    kernel, defines, cut, sizes = CASES[case]
    text = build(tmp_path, kernel, defines)
    assert cut in text[text.index("tma_load_to_all<cluster_size>(") :].split(";")[0]
    operands = inputs(kernel, defines, *sizes)
    want = expected(kernel, defines, operands)
    for blocks in (2, 4):
        got = product(tmp_path, operands, blocks)
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3 * np.abs(want).max())
    assert launched == [(2, 1, 1)] * 2


def test_blocks_of_one_tile_each_load_for_each_other_too(
    tmp_path: Path,
    launched: list[tuple[int, int, int] | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then a pair lies side by side in a grid that is even along x, too."""
    monkeypatch.setattr(launch, "may_stay", lambda *_, **__: False)
    assert "for (int tile" not in build(tmp_path, "product", TWO)
    for n in (136, 264):
        operands = inputs("product", TWO, 456, n, 200)
        want = expected("product", TWO, operands)
        got = product(tmp_path, operands, 4)
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3 * np.abs(want).max())
    assert launched == [(2, 1, 1), None]


def test_what_is_not_even_or_whole_lines_is_launched_without_clusters(
    tmp_path: Path, launched: list[tuple[int, int, int] | None]
) -> None:
    build(tmp_path, "product", TWO)
    for sizes, blocks in (((328, 264, 136), 4), ((456, 136, 136), 3), ((456, 128, 136), 4)):
        operands = inputs("product", TWO, *sizes)
        want = expected("product", TWO, operands)
        got = product(tmp_path, operands, blocks)
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3 * np.abs(want).max())
    assert launched == [None] * 3


def test_known_sizes_decide_at_once(tmp_path: Path) -> None:
    def told(m: int, n: int, **more: object) -> str:
        folder = tmp_path / f"{m}_{n}_{len(more)}"
        return build(folder, "product", {**TWO, "M": m, "N": n, "K": 512, **more})

    assert "product_clusters(" in told(4000, 4072)
    assert "clusters" not in told(4096, 4096)  # rows of whole lines
    assert "clusters" not in told(1024, 1016)  # fewer tiles than multiprocessors
    assert "clusters" not in told(4096 + 128, 4072)  # 33 rows of tiles
    assert "clusters" not in told(4096, 4072, block_M=64, threads=128)
    assert "clusters" not in build(tmp_path / "decayed", "decayed", {})
    promised = build(tmp_path / "promised", "product", {**TWO, "N%64": 0})
    assert "clusters" not in promised


def test_whatever_is_taken_out_is_reported(
    tmp_path: Path, launched: list[tuple[int, int, int] | None]
) -> None:
    text = build(tmp_path, "product", TWO)
    found = mutants(text, clusters=True)
    missed = [what for what, mutant in found if not reported(tmp_path, mutant)]
    assert not missed


def reported(folder: Path, text: str) -> bool:
    """Whether a check finds something in clusters of the text or without them, or a number is wrong."""
    text_of(folder).write_text(text)
    operands = inputs("product", TWO, 512, 72, 328)
    want = expected("product", TWO, operands)
    for blocks in (2, 3):  # an odd grid is launched without
        try:
            got = product(folder, operands, blocks)
        except KernelError:
            return True
        if not np.allclose(got, want, rtol=4e-3, atol=4e-3 * np.abs(want).max()):
            return True
    return False


# What is right in the text -> what is not.
WRONG = {
    "the load reaches block 0 alone": ("(1 << cluster_size) - 1", "1"),
    "the load reaches a block that is not there": ("(1 << cluster_size) - 1", "7"),
    "the barriers wait for half of the consumers": ("8 * cluster_size)", "8)"),
    "stages are given back here alone": ("empty[ring.stage], lane)", "empty[ring.stage], rank)"),
    "stages are given back by a lane alone": ("if (lane < cluster_size)", "if (lane < 1)"),
    "the barriers are ready in this block alone": ("    cluster_arrive();\n", "    __syncthreads();\n"),
    "both blocks load the same half": ("bx * block_N + slab * 64", "bx * block_N"),
    "a tile goes where a block without clusters has it": ("shared_addr(p) & 0x3ffff", "shared_addr(p)"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_reported(
    tmp_path: Path, wrong: str, launched: list[tuple[int, int, int] | None]
) -> None:
    text = build(tmp_path, "product", TWO)
    before, after = WRONG[wrong]
    assert before in text
    assert reported(tmp_path, text.replace(before, after))
