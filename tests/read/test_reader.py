"""The gate in front of the parser, and what a `Source` knows of its text."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.read import Source, read_source


def read(tmp_path: Path, data: bytes) -> tuple[Source | None, Diagnostics]:
    path = tmp_path / "input.py"
    path.write_bytes(data)
    diagnostics = Diagnostics()
    return read_source(path, diagnostics), diagnostics


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"x = 1\ny = (\n", "T2C101", 2),
        (b"x = 1\nif x:\ny = 2\n", "T2C101", 3),
        (b"a = 1\nb = '\xff'\n", "T2C103", 2),
        (b"a = 1\n\0\n", "T2C103", 2),
        (b"x = " + b"(" * 3000 + b")" * 3000, "T2C104", 1),
        (b"x = " + b"[" * 90 + b"]" * 90 + b"\ny = " + b"1 + " * 8000 + b"1\n", "T2C104", 2),
        (b"x = " + b"-" * 5000 + b"1\n", "T2C104", 1),
        (b"#" * (5 * 1024 * 1024), "T2C102", 1),
    ],
)
def test_bad_files_end_at_the_gate(tmp_path: Path, data: bytes, code: str, line: int) -> None:
    source, diagnostics = read(tmp_path, data)
    assert source is None
    (item,) = diagnostics.items
    assert item.code == code and item.span is not None and item.span.line == line


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads them")
@pytest.mark.parametrize(
    "line", ["type V = list[int]", "def f[T1](x): pass", 'x = f"{"a"}"', "x = f'{f'{1}'}'"]
)
def test_newer_python_is_named(tmp_path: Path, line: str) -> None:
    source, diagnostics = read(tmp_path, f"y = 1\n{line}\n".encode())
    assert source is None
    (item,) = diagnostics.items
    assert item.code == "T2C101" and item.span is not None and item.span.line == 2
    assert "newer Python than 3.11" in item.message


@pytest.mark.parametrize("line", ["x = '\\x'", "x = b'é'", "x = '\\N{nothing}'", "f() = 1"])
def test_what_no_python_reads(tmp_path: Path, line: str) -> None:
    source, diagnostics = read(tmp_path, f"y = 1\n{line}\n".encode())
    assert source is None
    (item,) = diagnostics.items
    assert item.code == "T2C101" and "this is not Python" in item.message


def test_byte_order_mark_and_line_ends(tmp_path: Path) -> None:
    source, diagnostics = read(tmp_path, b"\xef\xbb\xbfx = 1\r\ny = 2  # two\r\n")
    assert source is not None and not diagnostics.items
    assert source.text == "x = 1\ny = 2  # two\n"
    assert source.comments[2].text == "# two" and not source.comments[2].own_line
    assert len(source.sha256) == 64


def test_columns_count_characters(tmp_path: Path) -> None:
    source, _ = read(tmp_path, "s = 'äöü'; t = 1\n".encode())
    assert source is not None
    second = source.module.body[1]
    assert isinstance(second, ast.Assign)
    span = source.span(second.targets[0])
    assert (span.col, span.end_col) == (11, 12) and span.start().endswith(":1:12")


def test_quotes_are_one_line(tmp_path: Path) -> None:
    text = "f(\n    a,  # first\n    b[\n        0\n    ],\n)\n"
    source, _ = read(tmp_path, text.encode())
    assert source is not None
    assert source.cut(source.span(source.module.body[0])) == "f(a, b[0])"


def test_comments_above(tmp_path: Path) -> None:
    source, _ = read(tmp_path, b"# far\n\n# one\n# two\nx = 1\n")
    assert source is not None
    assert source.comments_above(5) == ("# one", "# two")


def test_siblings_are_read(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("import input\nVALUE = 3\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "inner.py").write_text("from . import missing\n")
    (tmp_path / "broken.py").write_text("def (\n")
    text = b"import helper, torch\nfrom package import inner\nfrom .helper import VALUE\n"
    text += b"import broken\n"
    source, diagnostics = read(tmp_path, text)
    assert source is not None and not diagnostics.items
    assert set(source.siblings) == {"helper", ".helper", "package.inner"}
    assert source.siblings["helper"] is source.siblings[".helper"]
    assert source.siblings["helper"].siblings["input"] is source


def test_comments_for_tools_are_not_the_authors(tmp_path: Path) -> None:
    text = b"x = [  # noqa: E501\n    1,  # one\n]  # type: ignore\n"
    source, _ = read(tmp_path, text)
    assert source is not None
    assert [comment.text for comment in source.comments.values()] == ["# one"]
    assert source.cut(source.span(source.module.body[0])) == "x = [1]"
