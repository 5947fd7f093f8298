"""A source file after reading: its text, its syntax tree, its comments, and how to quote it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.record import record


@record
class Comment:
    """One comment; `own_line` when nothing but blanks stands before it."""

    text: str  # with its "#"
    line: int
    col: int
    own_line: bool


@record(eq=False)
class Source:
    """A parsed Python file. Trees are `ast` nodes; `span` gives a node's place in characters."""

    path: Path
    name: str  # as the command line has it, with "/" between folders
    text: str  # line ends normalized to "\n"
    sha256: str  # of the file's bytes
    module: ast.Module
    lines: tuple[str, ...]
    comments: Mapping[int, Comment]  # by line: a line holds at most one; those meant for people
    pragmas: Mapping[int, Comment]  # those meant for tools: `# type: ignore`
    siblings: Mapping[str, Source] = field(default_factory=dict)  # by the name imported

    @property
    def stem(self) -> str:
        """The file's name without its suffixes: `gemm` for `gemm.py` and `gemm.tile.py`."""
        return self.path.name.removesuffix(".py").removesuffix(".tile")

    def span(self, node: ast.AST) -> Span:
        """Where `node` stands; `ast` counts columns in bytes, a span counts characters."""
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        col, end_col = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
        return Span(
            self.name, line, self.column(line, col), end_line, self.column(end_line, end_col)
        )

    def column(self, line: int, offset: int) -> int:
        """The character column of byte `offset` in `line`."""
        text = self.lines[line - 1]
        if text.isascii():
            return offset
        return len(text.encode()[:offset].decode(errors="ignore"))

    def cut(self, span: Span) -> str:
        """The text of `span` on one line, without the comments inside it."""
        pieces: list[str] = []
        for line in range(span.line, span.end_line + 1):
            text = self.lines[line - 1]
            end = span.end_col if line == span.end_line else len(text)
            comment = self.comments.get(line) or self.pragmas.get(line)
            if comment is not None:
                end = min(end, comment.col)
            start = span.col if line == span.line else 0
            pieces.append(text[start:end].strip().removesuffix("\\").strip())
        return _join([piece for piece in pieces if piece])

    def comments_above(self, line: int) -> tuple[str, ...]:
        """The unbroken block of own-line comments that ends directly above `line`."""
        found: list[str] = []
        line -= 1
        while (comment := self.comments.get(line)) is not None and comment.own_line:
            found.append(comment.text)
            line -= 1
        return tuple(reversed(found))


def _join(pieces: list[str]) -> str:
    """Lines as one; without the comma that stands before a bracket on a line of its own."""
    text = ""
    for piece in pieces:
        if piece[0] in ")]}":
            text = text.removesuffix(",")
        tight = not text or text[-1] in "([{" or piece[0] in ")]}"
        text += piece if tight else f" {piece}"
    return text
