"""`load`: which kernels, which backend, which target."""

from __future__ import annotations

from pathlib import Path

import manifests
import pytest
import tile2c
from tile2c.runtime.errors import CompileError


def folder(tmp_path: Path) -> Path:
    return manifests.write(
        tmp_path,
        manifests.add_entry(target="cuda:sm_80", file="cuda_sm_80/add.cu"),
        manifests.add_entry(target="hip:gfx942", file="hip_gfx942/add.hip"),
    )


def test_the_emulator_needs_a_target_where_there_are_several(tmp_path: Path) -> None:
    out = folder(tmp_path)
    with pytest.raises(ValueError, match=r"cuda:sm_80, hip:gfx942: the emulator needs target="):
        tile2c.load(out, backend="emulate")
    for target in ("hip:gfx942", "hip"):
        kernels = tile2c.load(out, backend="emulate", target=target)
        assert list(kernels) == ["add"] and kernels["add"].target == "hip:gfx942"
    with pytest.raises(ValueError, match="holds nothing for cuda:sm_90a; there is cuda:sm_80"):
        tile2c.load(out, backend="emulate", target="cuda:sm_90a")


def test_the_environment_chooses_a_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE2C_BACKEND", "emulate")
    kernels = tile2c.load(folder(tmp_path), target="cuda")
    assert kernels["add"].backend.name == "emulate"
    assert "add(A[N], B[N], C[N], alpha) for cuda:sm_80 on emulate" in repr(kernels["add"])


def test_unknown_names_and_checks(tmp_path: Path) -> None:
    kernels = tile2c.load(folder(tmp_path), backend="emulate", target="cuda", check="races,memory")
    with pytest.raises(KeyError, match="no kernel gemm in"):
        kernels["gemm"]
    with pytest.raises(ValueError, match="unknown check 'race'"):
        tile2c.load(tmp_path, backend="emulate", target="cuda", check="race")
    with pytest.raises(ValueError, match='needs backend="emulate"'):
        tile2c.load(tmp_path, backend="cuda", check="races")


def test_never_compiling_raises_at_once(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="never"):
        tile2c.load(folder(tmp_path), backend="emulate", target="cuda", compile="never")


def test_conflict_marks_are_refused(tmp_path: Path) -> None:
    marks = "<<<<<<< add.cu as edited\n=======\n>>>>>>> add.cu as generated\n"
    out = manifests.write(tmp_path, manifests.add_entry(), texts={"add.cu": marks})
    with pytest.raises(ValueError, match="holds conflict marks"):
        tile2c.load(out, backend="emulate")["add"].prepare()


def test_what_is_no_output_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not an output folder of tile2c"):
        tile2c.load(tmp_path)
    (tmp_path / "tile2c.json").write_text('{"version": 2, "kernels": []}')
    with pytest.raises(ValueError, match="version 2 is not known"):
        tile2c.load(tmp_path)
