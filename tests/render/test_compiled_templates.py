"""The cache of compiled templates changes nothing but the time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
