"""The public examples' own checks against torch, on the kernels written for them.

Slow, of a checkout that is not here (TILELANG_EXAMPLES names its folder `examples`), and on a device.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from public_examples import listed
from reference_runs import SECONDS, run_apart, table


def test_the_table_names_listed_files() -> None:
    assert set(table()) <= set(listed())
    assert all(len(run) == 1 for run in table().values())


def _device() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in listed() if "skip" not in table().get(name, {})])
def test_an_example_agrees_with_its_reference(name: str, tmp_path: Path) -> None:
    folder = os.environ.get("TILELANG_EXAMPLES")
    if folder is None or not _device():
        pytest.skip(
            "needs TILELANG_EXAMPLES (the folder `examples` of a checkout), torch, a device"
        )
    found = run_apart(Path(folder).resolve(), name, tmp_path, dry=False, seconds=SECONDS)
    assert found["status"] in ("agrees", "unchecked"), found["words"]
