"""TileLang's public examples: every kernel of them is written for sm_90a and compiles.

Slow, and of a checkout that is not here: TILELANG_EXAMPLES names its folder `examples`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from public_examples import listed, outcomes, report, table

# What an example itself makes wrong, and raw matrix instructions of another vendor.
REFUSED = {
    "autodd/tilelang_buggy.py": "T2C304",
    "autodd/tilelang_minimized_expected.py": "T2C304",
    "gemm_fp8/example_tilelang_gemm_amd_fp8_preshuffle.py": "T2C110",
    "gemm_sp/sparse_utils.py": "T2C1",
}


def test_the_table_names_listed_files() -> None:
    assert set(table()) <= set(listed())


@pytest.mark.slow
def test_public_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = os.environ.get("TILELANG_EXAMPLES")
    if folder is None:
        pytest.skip("TILELANG_EXAMPLES is not set: the folder `examples` of a checkout")
    root, compiler = Path(folder), shutil.which("nvcc")
    found = [one for name in listed() for one in outcomes(root, name, tmp_path, compiler)]
    with capsys.disabled():
        print(f"\n{report(found)}")
    goal = "compiled" if compiler else "written"
    missing = [one for one in found if one.reached != goal]
    unexpected = [one for one in missing if not one.problem.startswith(REFUSED.get(one.file, "-"))]
    assert not unexpected, report(unexpected)
