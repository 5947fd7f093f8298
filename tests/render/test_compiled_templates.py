"""The cache of compiled templates changes nothing but the time."""

from __future__ import annotations

import hashlib
import marshal
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jinja2
import pytest
from jinja2 import DictLoader, Environment, compiler
from tile2c.transpile.render.compiled import CompiledTemplates

Fill = Callable[..., str]


@pytest.fixture
def fill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fill:
    """Fills the template `text`, as one process of its own would."""
    monkeypatch.setenv("TILE2C_CACHE", str(tmp_path))

    def filled(text: str, **syntax: bool) -> str:
        cache = CompiledTemplates(syntax)
        loader = DictLoader({"loop": text})
        return (
            Environment(loader=loader, bytecode_cache=cache, **syntax).get_template("loop").render()
        )

    return filled


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_template_is_compiled_once(
    fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fill("{{ 1 + 1 }}") == "2"
    assert len(_files(tmp_path)) == 1
    monkeypatch.setattr(Environment, "compile", None)
    assert fill("{{ 1 + 1 }}") == "2"


def test_what_is_stale_is_made_anew(fill: Fill, tmp_path: Path) -> None:
    text = "{% if true %}\nx{% endif %}"
    assert fill(text) == "\nx"
    assert fill("y") == "y"
    assert fill(text, trim_blocks=True) == "x"
    assert len(_files(tmp_path)) == 1


def test_another_jinja_compiles_anew(
    fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill("x")
    (file,) = _files(tmp_path)
    before = file.read_bytes()
    other = tmp_path.parent / "compiler.py"
    other.write_text("")
    monkeypatch.setattr(compiler, "__file__", str(other))
    assert fill("x") == "x" and file.read_bytes() != before

    monkeypatch.setattr(compiler, "__file__", "/jinja.zip/jinja2/compiler.py")
    assert fill("x") == "x"
    zipped = file.read_bytes()
    monkeypatch.setattr(jinja2, "__version__", "0.0")
    assert fill("x") == "x" and file.read_bytes() != zipped


@pytest.mark.parametrize("size", [0, 10, 40, 200])
def test_a_damaged_file_is_made_anew(fill: Fill, tmp_path: Path, size: int) -> None:
    fill("x")
    (file,) = _files(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[:size] + b"\0" * (len(whole) - size))
    assert fill("x") == "x" and file.read_bytes() == whole


def test_nothing_is_kept_where_nothing_can_be_written(fill: Fill, tmp_path: Path) -> None:
    (tmp_path / "templates").write_text("not a folder")
    assert fill("x") == "x"
    assert not _files(tmp_path / "templates")


def test_a_folder_that_cannot_be_written_is_left_alone(
    fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "templates"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):  # for root: a full disk

        def refuse(*_: object) -> None:
            raise OSError("no space left")

        monkeypatch.setattr(os, "replace", refuse)
    assert fill("x") == "x"
    assert not _files(tmp_path)


def _forge(file: Path, cache: CompiledTemplates, source: str) -> None:
    """Puts code into the file, under a digest that is right."""
    other = Environment().compile(source)
    code = marshal.dumps(other)
    checksum = hashlib.sha1(b"x").hexdigest().encode()
    parts = (cache._made_by, checksum, code)
    file.write_bytes(hashlib.sha256(b"\0".join(parts)).digest() + code)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners here")
def test_what_others_can_write_is_not_run(
    fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fill("x") == "x"
    folder = tmp_path / "templates"
    (file,) = _files(folder)
    assert folder.stat().st_mode & 0o777 == 0o700 and file.stat().st_mode & 0o777 == 0o600
    _forge(file, CompiledTemplates({}), "forged")
    assert fill("x") == "forged"  # the user's own
    for path, modes in ((folder, (0o777, 0o770, 0o700)), (file, (0o666, 0o660, 0o600))):
        for mode in modes:
            path.chmod(mode)
            assert fill("x") == ("forged" if mode in (0o700, 0o600) else "x")
            path.chmod(modes[-1])
            _forge(file, CompiledTemplates({}), "forged")
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
        assert fill("x") == "x"
    assert fill("x") == "forged"
    monkeypatch.delattr(os, "getuid")
    folder.chmod(0o777)
    assert fill("x") == "forged"


PROCESS = """
from jinja2 import DictLoader, Environment
from tile2c.transpile.render.compiled import CompiledTemplates

texts = {str(number): "{{ %d + 1 }}" % number for number in range(40)}
for _ in range(3):
    cache = CompiledTemplates({})
    made = Environment(loader=DictLoader(texts), bytecode_cache=cache)
    for name in texts:
        assert made.get_template(name).render() == str(int(name) + 1)
"""


def test_processes_side_by_side(tmp_path: Path) -> None:
    environment = {**os.environ, "TILE2C_CACHE": str(tmp_path)}
    both = [subprocess.Popen([sys.executable, "-c", PROCESS], env=environment) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    assert len(_files(tmp_path)) == 40
