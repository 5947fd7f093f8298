"""What others can have written into the cache is not run: modules, and what the emulator compiles."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tile2c.runtime import compilers
from tile2c.runtime.emulate import compiler
from tile2c.runtime.emulate.ascendc.builder import MODEL
from tile2c.runtime.emulate.objects import compile_unit
from tile2c.transpile.user_cache import keep

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners here")
OPEN = (0o777, 0o770, 0o722, 0o720)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILE2C_CACHE", str(tmp_path / "cache"))
    compiler._passing_folder.cache_clear()
    return tmp_path / "cache"


def kept_module() -> bytes:
    return compilers._cached(("a text",), ".cubin", lambda: b"made")


def test_modules(cache: Path) -> None:
    assert kept_module() == b"made"
    folder = cache / "modules"
    (file,) = folder.iterdir()
    file.write_bytes(b"forged")
    assert kept_module() == b"forged"  # the user's own
    for path in (folder, file):
        right = path.stat().st_mode
        for mode in OPEN:
            path.chmod(mode)
            assert kept_module() == b"made"
            path.chmod(right)
            file.write_bytes(b"forged")


def test_a_user_s_module_is_no_one_else_s(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_module()
    (file,) = (cache / "modules").iterdir()
    file.write_bytes(b"forged")
    owner = file.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert kept_module() == b"made" and file.read_bytes() == b"forged"


def test_the_emulator_leaves_a_folder_that_others_can_write(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = compiler.cache_folder()
    assert folder == cache / "emulate" and folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o770)
    other = compiler.cache_folder()
    assert other != folder and other.stat().st_mode & 0o777 == 0o700
    assert "emulate is not used: others can write to it" in capsys.readouterr().err
    folder.chmod(0o755)
    assert compiler.cache_folder() == folder


def counted(made: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a compiler runs for it."""
    runs: list[object] = []
    run = compiler._run

    def counting(command: list[str], *rest: object, **more: object) -> object:
        runs.append(command)
        return run(command, *rest, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(compiler, "_run", counting)
        made()
    return len(runs)


def test_objects_of_the_emulator(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "part.cpp"
    source.write_text("int part;")

    def made() -> Path:
        return compiler._object(source, "headers")

    before = os.umask(0)
    try:
        assert counted(made, monkeypatch) == 1
    finally:
        os.umask(before)
    assert made().stat().st_mode & 0o022 == 0 and counted(made, monkeypatch) == 0
    made().chmod(0o666)
    assert counted(made, monkeypatch) == 1 and counted(made, monkeypatch) == 0


def test_a_model_s_objects_are_closed_to_others(cache: Path) -> None:
    before = os.umask(0)
    try:
        target = cache / MODEL.name / "unit.o"
        compile_unit(compiler.find_compiler(), ("-c",), "int unit;", target, [], "unit")
    finally:
        os.umask(before)
    assert target.stat().st_mode & 0o022 == 0 and target.parent.stat().st_mode & 0o022 == 0


def test_what_is_kept_is_closed_to_others(tmp_path: Path) -> None:
    made, target = tmp_path / "made", tmp_path / "target"
    made.write_bytes(b"x")
    made.chmod(0o777)
    keep(made, target)
    assert target.stat().st_mode & 0o777 == 0o755 and not made.exists()
