"""Caches that are damaged or cannot be made, disks that fill up, links in the place of folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tile2c
from attack_harness import elements
from tile2c.runtime.emulate import BuildRequest, build, compiler, load
from tile2c.runtime.emulate.arch import find_arch
from tile2c.transpile.cli.main import main

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A kernel file of its own text, so that no other test has its module."""
    source = tmp_path / "input.py"
    source.write_text(elements(body=f"B[0] = A[0] + {os.getpid()}"))
    assert main([str(source), "-o", str(tmp_path / "out")]) == 0
    (file,) = (tmp_path / "out").glob("*.cu")
    return file


@pytest.mark.parametrize("kept", [0, 50, 5000, -1])
def test_a_module_that_is_cut_off_is_built_again(kernel: Path, kept: int) -> None:
    arch = find_arch("cuda", "sm_80")
    assert arch is not None
    text = kernel.read_text() + f"// {kept}\n"
    kernel.write_text(text)
    library = build(BuildRequest(str(kernel), text, arch, checked=False))
    library.write_bytes(library.read_bytes()[:kept])
    module = load(kernel, family="cuda", arch="sm_80")
    assert module.library == library
    (entry,) = {launch.entry for launch in tile2c.load(
        kernel.parent, backend="emulate")["kern"].record.launches}  # fmt: skip
    assert module.parameter_sizes(entry) is not None


def test_a_damaged_archive_is_built_again(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The emulator's own library: all that the compiler is asked for is made anew, once."""
    built: list[str] = []
    cache = tmp_path / "cache"
    monkeypatch.setenv("TILE2C_CACHE", str(cache))
    real = compiler._object

    def small(source: Path, headers: str) -> Path:
        built.append(source.stem)
        return real(source, headers) if source.stem == "launch" else whole[source.stem]

    whole = _objects_of_the_user(monkeypatch, cache)
    monkeypatch.setattr(compiler, "_object", small)
    (cache / "emulate").mkdir(parents=True)
    archive = cache / "emulate" / f"runtime-{compiler._sources_digest()}.a"
    archive.write_bytes(b"!<arch>\nnothing")
    kernels = tile2c.load(kernel.parent, backend="emulate")
    assert kernels["kern"].prepare() is not None
    assert "launch" in built and archive.stat().st_size > 10_000


def _objects_of_the_user(monkeypatch: pytest.MonkeyPatch, cache: Path) -> dict[str, Path]:
    """The objects that the user's cache has, or that are made there now."""
    monkeypatch.delenv("TILE2C_CACHE")
    headers = compiler._digest(compiler._header_parts())
    folders = (compiler._HERE / name for name in compiler._LIBRARY_FOLDERS)
    sources = [path for folder in folders for path in folder.glob("*.cpp")]
    found = {source.stem: compiler._object(source, headers) for source in sources}
    monkeypatch.setenv("TILE2C_CACHE", str(cache))
    return found


def test_a_cache_that_cannot_be_made_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TILE2C_CACHE", str(tmp_path / "file"))
    folder = compiler.cache_folder()
    assert folder.is_dir() and folder == compiler.cache_folder()
    told = capsys.readouterr().err
    assert told.count("TILE2C_CACHE names another folder") == 1
    shutil.rmtree(folder)
    compiler._passing_folder.cache_clear()
    assert main([str(SAMPLES / "add.py"), "-o", str(tmp_path / "out")]) == 0


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
from tile2c.transpile.cli.main import main
sys.exit(main())
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of a process")
@pytest.mark.parametrize("most", [0, 1000, 2000, 100_000])
def test_files_that_may_not_grow(tmp_path: Path, most: int) -> None:
    """Like a disk that fills up: all is written or nothing, and no temporary file stays."""
    source = tmp_path / "add.py"
    shutil.copy(SAMPLES / "add.py", source)
    out, cache = tmp_path / "out", tmp_path / "cache"
    assert main([str(source), "-o", str(out), "--launcher"]) == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    source.write_text(source.read_text().replace("1024", "512"))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(most), str(source), "-o", str(out)],
        capture_output=True, text=True, env={**os.environ, "TILE2C_CACHE": str(cache)},
    )  # fmt: skip
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
    after = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert after.keys() == before.keys()
    assert done.returncode == (0 if most == 100_000 else 1)
    assert (after == before) == (done.returncode == 1)
    assert done.returncode == 0 or "T2C606" in done.stderr
    assert not [path for path in cache.rglob("*") if path.suffix not in (".lock", "")
                and path.stat().st_size == 0]  # fmt: skip


def test_links_in_the_place_of_folders_and_files(tmp_path: Path) -> None:
    """A link stays one; what it names is written, also where that was not there yet."""
    (tmp_path / "real").mkdir()
    for name, target in (("link", "real"), ("later", "not_yet")):
        (tmp_path / name).symlink_to(target)
        assert main([str(SAMPLES / "add.py"), "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).is_symlink() and (tmp_path / target / "add.cu").is_file()
    kernel = tmp_path / "real" / "add.cu"
    kernel.rename(tmp_path / "elsewhere.cu")
    kernel.symlink_to("../elsewhere.cu")
    command = [str(SAMPLES / "add.py"), "-o", str(tmp_path / "link")]
    assert main([*command, "-D", "block_N=512", "--force"]) == 0
    assert kernel.is_symlink() and "block_N = 512" in (tmp_path / "elsewhere.cu").read_text()
    assert main([*command, "-D", "block_N=512", "--check"]) == 0


def test_a_circle_of_links_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    status = main([str(SAMPLES / "add.py"), "-o", str(tmp_path / "one")])
    told = capsys.readouterr().err
    assert status in (1, 2) and "error[T2C" in told and "internal error" not in told


@pytest.mark.parametrize(
    "folder",
    ["with space", "quo'te", 'dou"ble', "größe", "日本", "dollar$HOME", "%s", "semi;colon"],
)
def test_folders_of_any_name(tmp_path: Path, folder: str) -> None:
    home = tmp_path / folder
    home.mkdir()
    shutil.copy(SAMPLES / "add.py", home)
    assert main([str(home / "add.py"), "-o", str(home / "out put"), "--launcher"]) == 0
    run = ["run", str(home / "out put"), "--backend", "emulate", "--against", "interpreter"]
    assert main(run) == 0
    assert main([str(home / "add.py"), "-o", str(home / "out put"), "--check"]) == 0
    assert main(["where", f"{home / 'out put' / 'add.cu'}:30"]) == 0
    kernels = tile2c.load(home / "out put", backend="emulate")
    assert kernels["add"](np.ones(5, np.float32), np.ones(5, np.float32)).tolist() == [2] * 5
