"""TileLang's public examples: every kernel of them is written for sm_90a and compiles.

Slow, and of a checkout that is not here: TILELANG_EXAMPLES names its folder `examples`.
TILELANG_EXAMPLES_OUT may name a folder in which texts and outcomes stay: a run that was stopped goes
on there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from public_examples import Outcome, listed, outcomes, report, table

# What an example itself makes wrong, and raw matrix instructions of another vendor.
REFUSED = {
    "autodd/tilelang_buggy.py": "T2C304",
    "autodd/tilelang_minimized_expected.py": "T2C304",
    "gemm_fp8/example_tilelang_gemm_amd_fp8_preshuffle.py": "T2C110",
}


def test_the_table_names_listed_files() -> None:
    assert set(table()) <= set(listed())


@pytest.fixture(scope="module")
def found() -> Iterator[list[Outcome]]:
    """Outcomes of the files so far; the counts are printed at the end."""
    so_far: list[Outcome] = []
    yield so_far
    print(f"\n{report(so_far)}")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = os.environ.get("TILELANG_EXAMPLES_OUT")
    return Path(kept) if kept else tmp_path_factory.mktemp("examples")


@pytest.mark.slow
@pytest.mark.parametrize("name", listed())
def test_public_example(name: str, out: Path, found: list[Outcome]) -> None:
    folder = os.environ.get("TILELANG_EXAMPLES")
    if folder is None:
        pytest.skip("TILELANG_EXAMPLES is not set: the folder `examples` of a checkout")
    compiler = shutil.which("nvcc")
    kernels = outcomes(Path(folder), name, out, compiler)
    found += kernels
    goal = "compiled" if compiler else "written"
    missing = [one for one in kernels if one.reached != goal]
    unexpected = [one for one in missing if not one.problem.startswith(REFUSED.get(name, "-"))]
    assert not unexpected, report(unexpected)
