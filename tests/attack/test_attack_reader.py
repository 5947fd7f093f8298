"""Files that are no tile programs, and how what is wrong with them is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attack_harness import elements
from tile2c.transpile.cli.main import main
from tile2c.transpile.diagnostics import Diagnostics, Span
from tile2c.transpile.diagnostics.render import LONGEST_QUOTE, as_text
from tile2c.transpile.read import read_source


def shown(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "input.py"
    path.write_bytes(data)
    diagnostics = Diagnostics()
    read_source(path, diagnostics)
    lines = data.decode("utf-8", errors="replace").split("\n")
    return "\n".join(as_text(item, lambda _: lines) for item in diagnostics.items)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings_are_named(tmp_path: Path, encoding: str) -> None:
    text = shown(tmp_path, "x = 1\n".encode(encoding))
    assert f"the file is {encoding.upper()} text" in text and "save the file as UTF-8" in text


def test_a_quote_cannot_steer_the_terminal(tmp_path: Path) -> None:
    text = shown(tmp_path, b"x = '\x1b[2J\x07\x08\x00'\n")
    assert "NUL byte" in text
    assert all(char == "\n" or char.isprintable() for char in text)


def test_a_quote_is_a_window_on_a_long_line(tmp_path: Path) -> None:
    lines = ["x" * 5000 + "(here)" + "y" * 5000]
    diagnostics = Diagnostics()
    diagnostics.error("T2C111", "wrong", Span("f.py", 1, 5001, 1, 5005))
    _, quote, carets = as_text(diagnostics.items[0], lambda _: lines).split("\n")
    assert len(quote) <= LONGEST_QUOTE + 2 and quote.startswith("…") and quote.endswith("…")
    assert quote[carets.index("^") : carets.rindex("^") + 1] == "here"


def test_a_sum_too_long_for_the_parser_is_located(tmp_path: Path) -> None:
    text = shown(tmp_path, b"x = [1,\n  2]\n\ny = " + b"1 + " * 8000 + b"1\nz = 3\n")
    assert text.startswith((tmp_path / "input.py").as_posix() + ":4:1: error[T2C104]")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "\N{ZERO WIDTH NO-BREAK SPACE}" + text.replace("\n", "\r\n"),
        lambda text: text.replace("    ", "\t"),
        lambda text: text.replace("\n\n", "\n\f\n"),
        lambda text: text.replace("import tilelang", "\fimport tilelang", 1),
        lambda text: text.rstrip(),
        lambda text: text + "\n" * 3 + "# " + "x" * 1_000_000,
        lambda text: text + f"\nx = [{'1, ' * 50_000}]\n",
    ],
    ids=["crlf", "cr", "bom", "tabs", "form feeds", "page", "no end", "long line", "long list"],
)
def test_how_a_file_is_stored_does_not_matter(tmp_path: Path, change: Callable[[str], str]) -> None:
    kernels = []
    for folder, text in (("plain", elements()), ("other", change(elements()))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "input.py").write_bytes(text.encode())
        assert (
            main([str(tmp_path / folder / "input.py"), "-o", str(tmp_path / folder / "out")]) == 0
        )
        kernels.append((tmp_path / folder / "out" / "kern.cu").read_bytes())
    assert kernels[0] == kernels[1]
