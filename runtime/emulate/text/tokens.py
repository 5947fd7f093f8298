"""Splits C++ text into tokens that join to the same text again."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Punctuation is one character each: `::` of an asm statement and of a scope look alike.
_TOKEN = re.compile(
    r"""
    (?P<space>[^\S\n]+)
  | (?P<newline>\n)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*" | R"(?P<mark>[^()\s]*)\(.*?\)(?P=mark)")
  | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
  | (?P<name>(?:[^\W\d]|\$)\w*)
  | (?P<mark_line>(?<![^\n])\#[^\n]*)
  | (?P<punct>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text; `line` is the line of the author's file that it came from."""

    kind: str
    text: str
    line: int

    @property
    def is_blank(self) -> bool:
        """Whether it means nothing to the compiler."""
        return self.kind in {"space", "newline", "comment"}


_MARKER = re.compile(r'#\s*(?:line\s+)?(\d+)\s+"')


def tokenize(text: str) -> list[Token]:
    """All of `text`, in order. Line markers of the preprocessor set the lines that follow."""
    tokens: list[Token] = []
    line = 1
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "punct"
        if kind == "mark":
            kind = "string"
        piece = match.group()
        if kind == "mark_line" and tokens and tokens[-1].kind != "newline":
            kind = "punct"
        tokens.append(Token(kind, piece, line))
        marker = _MARKER.match(piece) if kind == "mark_line" else None
        if marker:
            line = int(marker.group(1)) - 1
        line += piece.count("\n")
    return tokens


def code(tokens: list[Token]) -> list[Token]:
    """Only what the compiler reads."""
    return [token for token in tokens if not token.is_blank]


def join(tokens: list[Token]) -> str:
    """The text again."""
    return "".join(token.text for token in tokens)


def matching(tokens: list[Token], start: int) -> int:
    """The index of the bracket that closes the one at `start`; the last index if none does."""
    depth = 0
    for index in range(start, len(tokens)):
        if tokens[index].kind != "punct":
            continue
        if tokens[index].text in "([{":
            depth += 1
        elif tokens[index].text in ")]}":
            depth -= 1
            if depth == 0:
                return index
    return len(tokens) - 1


def split(tokens: list[Token], separator: str) -> list[list[Token]]:
    """The parts between separators that stand outside all brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "punct":
            depth += (token.text in "([{") - (token.text in ")]}")
            if depth == 0 and token.text == separator:
                parts.append([])
                continue
        parts[-1].append(token)
    return parts
