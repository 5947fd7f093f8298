"""Texts of schedules: the author's order, what is asked of callers, compilers, other targets."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import tile2c
from by_hand_cases import CASES, PROGRAMS, build

FLAGS = (
    "-gencode arch=compute_90a,code=sm_90a -O3 -std=c++17 -cubin -Werror all-warnings -Xptxas -v"
)
QUICK = ("ring", "started", "attention", "gathered")


def in_order(text: str, *parts: str) -> bool:
    """Whether the parts stand in the text one behind the other."""
    at = 0
    for part in parts:
        at = text.find(part, at) + 1
        if not at:
            return False
    return True


def test_the_authors_statements_stand_in_his_order(tmp_path: Path) -> None:
    text = build("ring", tmp_path).read_text()
    kernel = text[text.index("__launch_bounds__(384, 1)") :]
    assert in_order(
        kernel,
        "barrier_init(full[slot], 1);",
        "barrier_init(free[slot], 256);",
        "barriers_visible();",
        "__syncthreads();  // the barriers are ready for everyone",
        "float C_local[1][8][4];  // [block_M, block_N] over its role's threads",
        "if (tx < 128) {",
        "fewer_registers<40>();",
        "barrier_wait(free[ko % num_stages], (ko / num_stages + 1) % 2);",
        "barrier_bytes(full[ko % num_stages], sizeof(A_shared[0]));",
        "tma_load(",
        "barrier_bytes(full[ko % num_stages], sizeof(B_shared[0]));",
        "barrier_arrive(full[ko % num_stages]);",
        "more_registers<232>();",
        "barrier_wait(full[ko % num_stages], ko / num_stages % 2);",
        "mma_begin();",
        "mma_commit();",
        "mma_wait<0>();",
        "barrier_arrive(free[ko % num_stages]);",
        "publish_to_async();",
        "threads_sync<2, 256>();  // C_shared is complete",
        "tma_store(C_map,",
        "tma_store_commit();",
        "tma_store_wait_read<0>();",
    ), kernel


def test_what_tma_wants_is_asked_of_the_caller(tmp_path: Path) -> None:
    text = build("ring", tmp_path).read_text()
    head = " ".join(line.strip("/ ") for line in text.split("#include")[0].splitlines())
    assert "K % 8 == 0, N % 8 == 0, M > 0, K > 0, N > 0" in head
    assert "map      A_map: A in boxes of 128 x 32, 64B swizzle" in head
    assert "roles    as the author schedules them" in head


def test_clusters_are_in_the_launch(tmp_path: Path) -> None:
    build("clustered", tmp_path)
    (kernel,) = json.loads((tmp_path / "tile2c.json").read_text())["kernels"]
    assert [int(x) for x in kernel["launch"][0]["cluster"]] == [2, 1, 1]


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942", "musa:mp_31", "ascendc:ascend910b"])
@pytest.mark.parametrize("kernel", ["one_stage", "ring", "gathered", "clustered"])
def test_other_targets_refuse_by_name(tmp_path: Path, kernel: str, target: str) -> None:
    with pytest.raises(tile2c.TranspileError) as caught:
        tile2c.build(PROGRAMS, tmp_path, target, {}, (kernel,))
    told = [item for item in caught.value.diagnostics if item.severity == "error"]
    assert told[0].code == "T2C590" and target in told[0].message


def compiles(case: str, folder: Path) -> None:
    """Compiles without warnings, spills or products that wait for each other."""
    program = shutil.which("nvcc")
    if program is None:
        pytest.skip("nvcc is not on the search path")
    path = build(case, folder)
    command = [program, *FLAGS.split(), path.name, "-o", "kernel.cubin"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and not re.search(r"C75|C76|serialized", said), said
    assert not sum(map(int, re.findall(r"(\d+) bytes (?:spill|stack)", said))), said


@pytest.mark.parametrize("case", QUICK)
def test_text_compiles_as_it_should(tmp_path: Path, case: str) -> None:
    compiles(case, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case not in QUICK])
def test_more_text_compiles_as_it_should(tmp_path: Path, case: str) -> None:
    compiles(case, tmp_path)
