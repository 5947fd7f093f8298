"""A hand-written TMA + mbarrier + wgmma GEMM: its numbers with tails, its speed, and mutants."""

# ruff: noqa: E501  (texts of kernels)
from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tile2c.runtime.errors import AccessError, KernelError, RaceError

sys.path.insert(0, str(Path(__file__).parent))
from hopper_harness import BOTH, NONE, launch, pitched, scalar, tensor_map

KERNEL = Path(__file__).parent / "kernels" / "gemm.cu"
SHARED = 1024 + 4 * 32768 + 32768 + 64
TILES = (1, 1)


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def run(path: Path, m: int, n: int, k: int, checks: frozenset[str] = BOTH) -> float:
    """The largest error against NumPy, relative to the largest value."""
    rng = np.random.default_rng(0)
    a = pitched(rng.standard_normal((m, k)).astype(np.float16))
    b = pitched(rng.standard_normal((k, n)).astype(np.float16))
    c = pitched(np.full((m, n), np.nan, np.float16))
    arguments = [
        tensor_map("A", a, (64, 128)),
        tensor_map("B", b, (64, 64)),
        tensor_map("C", c, (64, 64), writable=True),
        scalar(k),
    ]
    grid = (-(-n // 128), -(-m // 128), 1)
    launch(path, "gemm", arguments, grid=grid, block=(384, 1, 1), shared=SHARED, checks=checks)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    assert c.base is not None
    gaps = c.base[:, n:]
    assert np.isnan(gaps.astype(np.float32)).all()  # stores outside the map are dropped
    return float(np.abs(wanted - c.astype(np.float64)).max() / np.abs(wanted).max())


@pytest.mark.parametrize("schedule", ["latest", "earliest"])
@pytest.mark.parametrize("checks", [NONE, BOTH], ids=["plain", "checked"])
@pytest.mark.parametrize(
    "size", [(128, 128, 64), (1, 8, 16), (200, 136, 456), (129, 257, 65), (127, 120, 320)]
)
def test_numbers(
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int, int],
    checks: frozenset[str],
    schedule: str,
) -> None:
    monkeypatch.setenv("TILE2C_EMULATE_SCHEDULE", schedule)
    assert run(KERNEL, *size, checks) < 1e-3


@pytest.mark.parametrize(("checks", "limit"), [(NONE, 1.5), (BOTH, 4.0)], ids=["plain", "checked"])
def test_speed(checks: frozenset[str], limit: float) -> None:
    run(KERNEL, 128, 128, 64, checks)  # compiled
    took = []
    for _ in range(3):
        start = time.process_time()
        assert run(KERNEL, 512, 512, 512, checks) < 1e-3
        took.append(time.process_time() - start)
    assert min(took) < limit


WGMMA = 'asm volatile(\n        "{\\n"\n        ".reg .pred p;'
LOAD = 'asm volatile(\n        "cp.async.bulk.tensor.2d.shared'
STORE = 'asm volatile(\n        "cp.async.bulk.tensor.2d.global'
WAIT = 'asm volatile(\n        "{\\n"\n        ".reg .pred done;'
ARRIVE = 'asm volatile("mbarrier.arrive.shared'
EXPECT = 'asm volatile("mbarrier.arrive.expect_tx'
STMATRIX = 'asm volatile("stmatrix'

# What was done, the text and its replacement, the error, the line, words of the report.
MUTANTS: list[tuple[str, str, str, type[KernelError], str, str]] = [
    ("consumer does not wait", "barrier_wait(&shared.full[ring.stage], ring.phase);", "", RaceError,
     WGMMA, "race in memory"),
    ("consumer waits for the other phase", "&shared.full[ring.stage], ring.phase)",
     "&shared.full[ring.stage], ring.phase ^ 1)", RaceError, WGMMA, "the wgmma of"),
    ("one consumer waits for another stage", "&shared.full[ring.stage], ring.phase)",
     "&shared.full[(ring.stage + (group == 1 && ko == 2 ? 3 : 0)) % stages], ring.phase)", RaceError, WGMMA, "the wgmma of"),
    ("producer waits for the other phase", "ring.phase ^ 1);", "ring.phase);", KernelError, WAIT,
     "no thread can go on"),
    ("producer does not wait", "barrier_wait(&shared.empty[ring.stage], ring.phase ^ 1);", "",
     KernelError, EXPECT, "arrives 1 times"),
    ("consumer does not arrive", "if (lane == 0) barrier_arrive", "if (lane == 99) barrier_arrive",
     KernelError, WAIT, "lacks 8 of 8 arrivals"),
    ("every lane arrives", "if (lane == 0) barrier_arrive", "barrier_arrive", KernelError, ARRIVE,
     "are 8 arrivals a phase too few?"),
    ("no wait", "        mma_wait<0>();\n", "", RaceError, LOAD, "a wgmma of"),
    ("release before the wait", "        mma_wait<0>();\n        if (lane == 0) barrier_arrive(&shared.empty[ring.stage]);",
     "        if (lane == 0) barrier_arrive(&shared.empty[ring.stage]);\n        mma_wait<0>();", RaceError,
     LOAD, "the bulk load of"),
    ("wait one group too weak", "mma_wait<0>();", "mma_wait<1>();", RaceError, LOAD, "a wgmma of"),
    ("too few bytes announced", "(block_M + block_N) * block_K * 2", "block_M * block_K * 2", RaceError,
     WGMMA, "a bulk copy of"),
    ("too many bytes announced", "(block_M + block_N) * block_K * 2", "(block_M + block_N) * block_K * 2 + 16",
     KernelError, WAIT, "16 announced bytes"),
    ("no bytes announced", "barrier_expect(full, (block_M + block_N) * block_K * 2)", "barrier_arrive(full)",
     RaceError, WGMMA, "a bulk copy of"),
    ("no fence.proxy.async", "    publish_to_async();\n", "", RaceError, STORE, "without fence.proxy.async"),
    ("fence after the barrier", "    publish_to_async();\n    asm volatile(\"bar.sync %0, 128;\" :: \"r\"(1 + group) : \"memory\");",
     "    asm volatile(\"bar.sync %0, 128;\" :: \"r\"(1 + group) : \"memory\");\n    publish_to_async();", RaceError,
     STORE, "without fence.proxy.async"),
    ("no barrier before the store", "    asm volatile(\"bar.sync %0, 128;\" :: \"r\"(1 + group) : \"memory\");", "",
     RaceError, "", "the bulk store of"),
    ("no wgmma.fence", "        mma_begin();\n", "", RaceError, WGMMA, "no wgmma.fence"),
    ("no wait for the store", "        tma_store_wait_read<0>();\n", "", RaceError, STORE, "bulk store"),
    ("inits not published", "        barriers_visible();\n", "", RaceError, LOAD, "fence.mbarrier_init"),
    ("no barrier after the inits", "    __syncthreads();", "", RaceError, "", "what thread 0 of block (0, 0) writes"),
    ("too many registers", "set_registers_up<232>", "set_registers_up<240>", KernelError,
     "", "setmaxnreg.inc, where its block has 256 registers free;"),
    ("one warp gives registers", "        set_registers_down<40>();", "        if (threadIdx.x < 32) set_registers_down<40>();",
     KernelError, "asm volatile(\"setmaxnreg.dec", "by warp 0 and not by warp 1"),
    ("a tile off its alignment", "    alignas(1024) half A[stages]", "    half pad[64];\n    alignas(128) half A[stages]",
     AccessError, LOAD, "multiple of 1024"),
    ("one barrier short", "s < stages; ++s) {", "s < stages - 1; ++s) {", KernelError, WAIT, "no mbarrier.init"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "old", "new", "error", "at", "words"), MUTANTS, ids=[mutant[0] for mutant in MUTANTS]
)
def test_mutant_is_reported(
    tmp_path: Path, what: str, old: str, new: str, error: type[KernelError], at: str, words: str
) -> None:
    text = KERNEL.read_text()
    assert text.count(old) == 1, what
    mutant = text.replace(old, new)
    path = tmp_path / "mutant.cu"
    path.write_text(mutant)
    with pytest.raises(error) as caught:
        run(path, 128, 128, 64 * 6)
    print(caught.value)
    assert type(caught.value) is error
    assert words in str(caught.value)
    if at:
        assert caught.value.line == line_of(mutant, at)


def test_accumulators_are_in_flight_until_the_wait(tmp_path: Path) -> None:
    text = KERNEL.read_text().replace("        mma_wait<0>();\n", "")
    path = tmp_path / "mutant.cu"
    path.write_text(text)
    with pytest.raises(RaceError) as caught:
        run(path, 128, 128, 64)
    assert "an accumulator of the wgmma issued at" in str(caught.value)
    assert abs((caught.value.line or 0) - line_of(text, STMATRIX)) <= 3
    assert caught.value.array == "accumulators"
    with pytest.raises(RaceError, match="is in flight"):
        run(path, 128, 128, 64, NONE)


def test_accumulators_touched_after_the_fence(tmp_path: Path) -> None:
    text = KERNEL.read_text().replace(
        "        mma_begin();\n", "        mma_begin();\n        if (ko > 0) acc[5] *= 2;\n"
    )
    path = tmp_path / "mutant.cu"
    path.write_text(text)
    with pytest.raises(
        RaceError, match=r"no wgmma.fence came since the access to its accumulators at line"
    ) as caught:
        run(path, 128, 128, 192)
    assert caught.value.line == line_of(text, WGMMA)


def test_swizzles_that_disagree_give_wrong_numbers(tmp_path: Path) -> None:
    text = KERNEL.read_text().replace("return (1ull << 62)", "return (0ull << 62)", 1)
    path = tmp_path / "mutant.cu"
    path.write_text(text)
    assert run(path, 128, 128, 64) > 0.01
