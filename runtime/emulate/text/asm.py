"""Reads asm statements: template, operands, and the little program in the template."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from tile2c.runtime.emulate.text.tokens import Token, code, join, split


class TextError(Exception):
    """The text holds something that the emulator does not model; `line` is the author's."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class Operand:
    """`"=r"(x)`: constraint letters and the C++ expression."""

    constraint: str
    expression: str
    name: str | None

    @property
    def is_output(self) -> bool:
        """Whether the statement writes it."""
        return "=" in self.constraint or "+" in self.constraint


@dataclass(frozen=True, slots=True)
class Statement:
    """One asm statement of the text."""

    line: int
    template: str
    operands: tuple[Operand, ...]


def _literal(token: Token) -> str:
    if token.text.startswith("R"):
        return token.text[token.text.index("(") + 1 : token.text.rindex(")")]
    value = ast.literal_eval(token.text.lstrip("uUL8"))
    assert isinstance(value, str)
    return value


def _operand(tokens: list[Token], line: int) -> Operand:
    body = code(tokens)
    name = None
    if body and body[0].text == "[":
        name, body = body[1].text, body[3:]
    if len(body) < 3 or body[0].kind != "string":
        raise TextError(line, f"an asm operand that is not understood: {join(tokens).strip()}")
    first = next(index for index, token in enumerate(tokens) if token.text == "(")
    expression = join(tokens[first:]).strip().replace("\n", " ")
    return Operand(_literal(body[0]), expression, name)


def parse_statement(tokens: list[Token], line: int) -> Statement:
    """Reads what stands between the brackets of `asm volatile(...)`."""
    parts = split(tokens, ":")
    strings = code(parts[0])
    if any(token.kind != "string" for token in strings):
        raise TextError(line, "an asm template that is not made of string literals")
    operands = [
        _operand(piece, line) for part in parts[1:3] for piece in split(part, ",") if code(piece)
    ]
    return Statement(line, "".join(_literal(token) for token in strings), tuple(operands))


@dataclass(frozen=True, slots=True)
class Label:
    """`NAME:`"""

    name: str


@dataclass(frozen=True, slots=True)
class Registers:
    """`.reg .pred p, q;`"""

    type: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Instruction:
    """`@!p opcode a, b;` with operands as text."""

    guard: str | None
    opcode: str
    operands: tuple[str, ...]


Item = Label | Registers | Instruction | str  # "{" and "}" open and close a scope of names

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"\s*([A-Za-z_$%][\w$%=]*)\s*:(?!:)")
_GUARD = re.compile(r"@(!?)\s*([\w%$]+)\s+")


def _split_operands(text: str) -> tuple[str, ...]:
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char in "{[(") - (char in "}])")
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    if current.strip():
        parts.append(current.strip())
    return tuple(parts)


def _instruction(text: str) -> Instruction | Registers:
    guard = None
    found = _GUARD.match(text)
    if found:
        guard, text = found.group(1) + found.group(2), text[found.end() :]
    opcode, _, rest = text.partition(" ")
    if opcode == ".reg":
        kind, _, names = rest.strip().partition(" ")
        wanted: list[str] = []
        for name in _split_operands(names):
            many = re.fullmatch(r"([\w%$]+)<(\d+)>", name)
            if many:
                wanted += [f"{many.group(1)}{index}" for index in range(int(many.group(2)))]
            else:
                wanted.append(name)
        return Registers(kind.lstrip("."), tuple(wanted))
    return Instruction(guard, opcode, _split_operands(rest))


def parse_program(template: str) -> list[Item]:
    """The items of an asm template, in order."""
    text = " ".join(_COMMENT.sub(" ", template).split())
    items: list[Item] = []
    at = 0
    while at < len(text):
        if text[at] in " ;":
            at += 1
            continue
        if text[at] in "{}":
            items.append(text[at])
            at += 1
            continue
        label = _LABEL.match(text, at)
        if label:
            items.append(Label(label.group(1)))
            at = label.end()
            continue
        end = text.find(";", at)
        end = len(text) if end < 0 else end
        items.append(_instruction(text[at:end].strip()))
        at = end + 1
    return items
