"""Which kernels get roles, what the others say, and what the compiler makes of the text."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hopper_cases import build, text_of

SMALL = {"block_M": 64, "block_N": 64, "block_K": 32}
FLAGS = (
    "-gencode arch=compute_90a,code=sm_90a -O3 -std=c++17 -cubin -Werror all-warnings -Xptxas -v"
)

REASONS = {
    "fewer rows": ({"block_M": 32, "block_N": 32}, "tiles of 32 rows are not made of the 64 rows"),
    "no stages": ({**SMALL, "num_stages": 0}, "num_stages=0 leaves nothing to load ahead"),
    "half a warpgroup": ({**SMALL, "threads": 64}, "64 threads are no row of whole warpgroups"),
    "odd pitch": ({**SMALL, "K": 100, "N": 64, "M": 64}, "rows of A are 100 elements apart"),
    "wide": ({"block_M": 64, "block_N": 512, "threads": 128}, "cannot share a 64 x 512 tile"),
}  # fmt: skip


@pytest.mark.parametrize("case", REASONS)
def test_the_ordinary_path_says_why(tmp_path: Path, case: str) -> None:
    defines, reason = REASONS[case]
    text = build(tmp_path, "product", defines)
    assert "wgmma.mma_async" not in text
    head = " ".join(line.strip("/ ") for line in text.split("#include")[0].splitlines())
    assert "path     mma.sync: " in head and reason in head, head


def test_launches_choose_by_pitch_and_address(tmp_path: Path) -> None:
    build(tmp_path, "product", SMALL)
    (kernel,) = json.loads((tmp_path / "tile2c.json").read_text())["kernels"]
    alone = [x for x in kernel["launch"] if x["cluster"] is None]  # no blocks that share rounds
    (copy_a, copy_b, roles, *over_copies, other, copy_c) = alone
    assert {x["entry"] for x in (copy_a, copy_b, copy_c)} == {"product_rows_float16"}
    assert [x["entry"] for x in over_copies] == ["product"] * 3
    assert roles["when"] == (
        "K % 8 == 0 and N % 8 == 0 and M > 0 and K > 0 and N > 0 "
        "and A % 16 == 0 and B % 16 == 0 and C % 16 == 0"
    )
    assert (
        roles["block"] == [256, 1, 1] and other["entry"] == "product_any" and other["when"] is None
    )
    a, b, c, *sizes = roles["args"]
    assert (a["kind"], a["tensor"], a["dims"], a["strides"]) == (
        "tensor_map",
        "A",
        ["K", "M"],
        ["K * 2"],
    )
    assert (a["box"], a["swizzle"], b["box"], b["swizzle"]) == ([32, 64], "64B", [64, 32], "128B")
    assert (c["tensor"], c["box"]) == ("C", [64, 64])
    assert [size["name"] for size in sizes] == ["K"]


def test_small_tiles_get_more_stages_and_a_second_warpgroup(tmp_path: Path) -> None:
    text = build(
        tmp_path, "product", {"block_M": 128, "block_N": 128, "block_K": 32, "threads": 128}
    )
    assert "threads 0 to 255: 2 warpgroups multiply 64 x 128 each" in text
    assert "constexpr int ring_stages = 6;" in text
    assert "half A_shared[ring_stages][128][32]" in text


@pytest.mark.parametrize(("kind", "sums"), [("float16", "float"), ("int8", "int")])
def test_sums_are_read_behind_the_last_wait(tmp_path: Path, kind: str, sums: str) -> None:
    defines = {
        **SMALL, "block_K": 64, "dtype": kind, "trans_B": True,
        **({"acc_dtype": "int32", "out_dtype": "int32"} if kind == "int8" else {}),
    }  # fmt: skip
    text = build(tmp_path, "product", defines)
    assert f"void pin({sums} (&c)" in text
    (entry,) = re.findall(r"[ ]product\(.*?\n}\n", text, re.DOTALL)
    assert entry.rindex("mma_wait<") < entry.index("pin(C_local)") < entry.rindex("C_local[")


def test_heads_name_every_launch(tmp_path: Path) -> None:
    defines = {"block_M": 128, "block_N": 256, "block_K": 64, "threads": 256, "num_stages": 4}
    head = " ".join(
        line.strip("/ ")
        for line in build(tmp_path, "product", defines).split("#include")[0].splitlines()
    )
    (kernel,) = json.loads((tmp_path / "tile2c.json").read_text())["kernels"]
    others = {x["entry"] for x in kernel["launch"]} - {"product"}
    assert others == {"product_any", "product_rows_float16", "product_clusters"}
    for entry in others:
        assert f"{'cluster ' if 'clusters' in entry else 'launch  '} {entry}: " in head, head
    assert "any grid along x will do, any even one for product_clusters" in head


def test_an_open_block_order_becomes_panels(tmp_path: Path) -> None:
    text = build(tmp_path, "product", {"block_M": 128, "block_N": 256, "threads": 256})
    assert "// Panels of 16 rows of tiles: blocks that run together share operands" in text


def test_the_authors_staging_is_the_stores_own(tmp_path: Path) -> None:
    text = build(tmp_path, "staged", SMALL)
    entry = text[text.index(" staged(") : text.index(" staged_any(")]
    assert "C_shared[" not in entry and "store_matrices(" in entry and "tma_store(C_map" in entry


TILES = [
    {"block_M": m, "block_N": n, "block_K": k, "threads": threads, "num_stages": 2}
    for m, n, threads in ((64, 64, 128), (128, 128, 128), (128, 256, 256), (64, 256, 256))
    for k in (32, 64, 128)
]
MAJORS = [
    {**SMALL, "trans_A": a, "trans_B": b, "dtype": kind, "out_dtype": kind}
    for a, b, kind in ((True, False, "float16"), (False, True, "float16"), (True, True, "bfloat16"))
]
BYTES = {"block_M": 128, "block_N": 128, "block_K": 128, "threads": 256, "trans_B": True}
MORE = [  # 8-bit types, and tiles that are computed turned
    {**BYTES, "dtype": "float8_e4m3fn"},
    {**BYTES, "dtype": "float8_e4m3fn", "block_N": 192},
    {**BYTES, "dtype": "float8_e4m3fn", "block_K": 256, "fast_accumulation": True},
    {**BYTES, "dtype": "int8", "acc_dtype": "int32", "out_dtype": "int32"},
    {"block_M": 16, "block_N": 64, "block_K": 128, "num_stages": 8},
    {"block_M": 256, "block_N": 128, "block_K": 64, "threads": 256},
]
SHORT = [TILES[0], TILES[7], MAJORS[2]]


def compiled(folder: Path) -> str:
    """What ptxas says; fails on any warning."""
    program = shutil.which("nvcc")
    if program is None:
        pytest.skip("nvcc is not on the search path")
    path = text_of(folder)
    done = subprocess.run(
        [program, *FLAGS.split(), path.name, "-o", "kernel.cubin"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def check(folder: Path, kernel: str, defines: dict[str, object]) -> None:
    build(folder, kernel, defines)
    said = compiled(folder)
    assert "C75" not in said and "serialized" not in said and "C76" not in said, said
    assert not sum(map(int, re.findall(r"(\d+) bytes (?:spill|stack)", said))), said


@pytest.mark.parametrize("defines", SHORT, ids=str)
def test_text_compiles_as_it_should(tmp_path: Path, defines: dict[str, object]) -> None:
    check(tmp_path, "product", defines)


@pytest.mark.slow
@pytest.mark.parametrize(
    "defines", [x for x in (*TILES, *MAJORS, *MORE) if x not in SHORT], ids=str
)
def test_more_text_compiles_as_it_should(tmp_path: Path, defines: dict[str, object]) -> None:
    check(tmp_path, "product", defines)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["batched", "gated", "decayed", "staged"])
def test_other_kernels_compile_as_they_should(tmp_path: Path, kernel: str) -> None:
    check(tmp_path, kernel, {})


def test_the_stage_before_is_known_where_products_run_on(tmp_path: Path) -> None:
    """A lone warpgroup frees a stage a round later; others need no such helper."""
    alone = build(tmp_path / "alone", "product", {**SMALL, "threads": 128})
    assert "barrier_arrive(empty[stage_before(ring)]);" in alone
    pair = build(tmp_path / "pair", "product", {**SMALL, "block_M": 128, "threads": 256})
    assert (
        "barrier_arrive_at<cluster_size>(empty[ring.stage], lane);" in pair
        and "stage_before" not in pair
    )
