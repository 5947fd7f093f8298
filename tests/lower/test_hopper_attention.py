"""Attention with roles: a first operand from registers, tiles loaded once, ends both roles need."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tile2c
from hopper_cases import TARGET, mutants, text_of
from test_hopper_text import FLAGS
from tile2c.runtime.errors import KernelError

PROGRAM = Path(__file__).parent / "programs" / "attention.py"
Defines = dict[str, object]

CASES: dict[str, tuple[Defines, tuple[tuple[int, int, int], ...]]] = {
    "full": ({}, ((1, 72, 2), (2, 129, 1), (1, 1, 1))),
    "causal": ({"causal": True}, ((1, 129, 1), (1, 64, 2))),
    "two warpgroups": (
        {"block_M": 128, "block_N": 64, "threads": 256, "causal": True},
        ((1, 200, 1),),
    ),
    "two blocks of rows": ({"block_M": 128, "block_N": 16, "threads": 128}, ((1, 150, 1),)),
    "one stage": ({"num_stages": 1, "dim": 128}, ((1, 100, 1),)),
    "three warpgroups": (
        {"block_M": 192, "block_N": 64, "threads": 384, "causal": True}, ((1, 200, 1),),
    ),
    "wide heads": ({"block_M": 128, "block_N": 64, "threads": 256, "dim": 256}, ((1, 150, 1),)),
    "bfloat16": ({"dtype": "bfloat16", "dim": 32}, ((1, 100, 1),)),
}  # fmt: skip


def build(folder: Path, defines: Defines) -> str:
    tile2c.build(PROGRAM, folder, TARGET, dict(defines), backend="emulate", force=True)
    return text_of(folder).read_text()


def right(
    folder: Path,
    defines: Defines,
    sizes: tuple[int, int, int],
    spread: float = 1.0,
    processors: int = 3,
) -> bool:
    """Whether the text in the folder gives attention's numbers; KernelError where a check objects.

    `processors`: multiprocessors of the device, which share the tiles out among them.
    """
    batch, length, heads = sizes
    rng = np.random.default_rng(0)
    kind: Any = ml_dtypes.bfloat16 if defines.get("dtype") == "bfloat16" else np.float16
    shape = (batch, length, heads, int(str(defines.get("dim", 64))))
    q, k, v = (rng.normal(0, spread, shape).astype(kind) for _ in range(3))
    (kernel,) = tile2c.load(folder, "emulate", target=TARGET, check="races,memory").values()
    kernel.backend.multiprocessors = processors  # type: ignore[attr-defined]
    got = np.asarray(kernel(q, k, v)).astype(np.float64)
    scores = (
        np.einsum("bihd,bjhd->bhij", *(x.astype(np.float64) for x in (q, k))) / shape[-1] ** 0.5
    )
    if defines.get("causal"):
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    want = np.einsum("bhij,bjhd->bihd", weights, v.astype(np.float64))
    bound = 2e-2 if kind is ml_dtypes.bfloat16 else 3e-3
    return bool(np.allclose(got, want, rtol=bound, atol=bound * spread))


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_right(tmp_path: Path, case: str) -> None:
    defines, sizes = CASES[case]
    text = build(tmp_path, defines)
    assert re.search(r"mma_m64n\d+k16_held\(", text) and "barrier_wait(Q_full, " in text
    for one in sizes:
        assert right(tmp_path, defines, one), one


@pytest.mark.parametrize("causal", [False, True])
def test_any_number_of_blocks_takes_all_tiles(tmp_path: Path, causal: bool) -> None:
    """Causal tiles differ in rounds: blocks take pairs of them, or each a tile where those do not go
    round (four pairs for three)."""
    defines: Defines = {
        "block_M": 128, "block_N": 64, "dim": 128, "threads": 256, "causal": causal,
    }  # fmt: skip
    text = build(tmp_path, defines)
    assert ("pair += gridDim.x" if causal else "tile += gridDim.x") in text
    assert "barrier_wait(Q_full, visit.phase)" in text
    for processors in (1, 3, 4):
        assert right(tmp_path, defines, (1, 260, 2), processors=processors), processors
    assert right(tmp_path, defines, (1, 500, 1), processors=1)  # an even number of tiles


@pytest.mark.parametrize("count", [1, 3, 5, 7, 8, 9])
def test_any_grid_takes_all_pairs(tmp_path: Path, count: int) -> None:
    """Four pairs, two of which have a tile alone: fewer blocks, more, one a tile, and one too many."""
    defines: Defines = {
        "block_M": 128, "block_N": 64, "dim": 128, "threads": 256, "causal": True,
    }  # fmt: skip
    build(tmp_path, defines)
    path = tmp_path / "tile2c.json"
    manifest = json.loads(path.read_text())
    for launch in manifest["kernels"][0]["launch"]:
        if not launch["entry"].endswith("_any"):
            launch["grid"] = [str(count), "1", "1"]
    path.write_text(json.dumps(manifest))
    assert right(tmp_path, defines, (1, 260, 2))


def test_two_blocks_share_an_sm_where_tiles_are_small(tmp_path: Path) -> None:
    """None of them stays then, and no product is late; wider tiles have an SM to themselves."""
    defines: Defines = {"block_M": 128, "block_N": 64, "threads": 256}
    small = build(tmp_path / "small", defines)
    assert "__launch_bounds__(384, 2)" in small and "more_registers<104>" in small
    assert "Blocks stay" not in small and "stage_before" not in small
    wide = build(tmp_path / "wide", {**defines, "block_N": 128})
    assert "__launch_bounds__(384, 1)" in wide and "Blocks stay" in wide and "stage_before" in wide


def test_sums_are_scaled_only_where_that_changes_them(tmp_path: Path) -> None:
    """Many sums for each factor: a warp asks first. Few: the question would cost more."""
    defines: Defines = {"block_M": 128, "block_N": 64, "threads": 256, "dim": 256}
    asked = "if (__any_sync(0xffffffffu, shrink[0] != 1.f || shrink[1] != 1.f)) {"
    text = build(tmp_path, defines)
    assert asked in text
    assert asked not in build(tmp_path / "narrow", {**defines, "dim": 128})
    path = text_of(tmp_path)
    path.write_text(text.replace("shrink[0] != 1.f || ", ""))
    assert not right(tmp_path, defines, (1, 200, 1))


def test_large_scores(tmp_path: Path) -> None:
    """Weights that are nearly all on one key."""
    build(tmp_path, {})
    assert right(tmp_path, {}, (1, 100, 1), spread=8.0)


def test_whatever_is_taken_out_is_reported(tmp_path: Path) -> None:
    """Rounds outnumber the stages, so that each is filled again, and one block takes all tiles."""
    defines: Defines = {"block_M": 128, "block_N": 64, "dim": 128, "threads": 256}
    text = build(tmp_path, defines)
    path = text_of(tmp_path)
    missed, count = [], 0
    for what, mutant in mutants(text):
        path.write_text(mutant)
        count += 1
        try:
            if right(tmp_path, defines, (1, 260, 1), processors=1):
                missed.append(what)
        except KernelError:
            continue
    assert count > 20 and not missed, missed


@pytest.mark.parametrize(("dim", "columns"), [(128, 128), (64, 64)])
@pytest.mark.parametrize("causal", [False, True])
def test_compiles_without_spills_or_waits_of_the_compilers(
    tmp_path: Path, causal: bool, dim: int, columns: int
) -> None:
    program = shutil.which("nvcc")
    if program is None:
        pytest.skip("nvcc is not on the search path")
    tiles: Defines = {"block_M": 128, "block_N": columns, "threads": 256}
    build(tmp_path, {**tiles, "dim": dim, "causal": causal})
    done = subprocess.run(
        [program, *FLAGS.split(), text_of(tmp_path).name, "-o", "kernel.cubin"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "C75" not in said and "serialized" not in said, said
    assert not sum(map(int, re.findall(r"(\d+) bytes (?:spill|stack)", said))), said


def test_operands_that_wgmma_cannot_take(tmp_path: Path) -> None:
    """Two warpgroups on 64 rows split columns: each would need the other's weights."""
    text = build(tmp_path, {"block_M": 64, "threads": 256})
    assert "wgmma.mma_async" not in text
    head = " ".join(line.strip("/ ") for line in text.split("#include")[0].splitlines())
    assert "weights is a fragment whose rows several warpgroups would need" in head
