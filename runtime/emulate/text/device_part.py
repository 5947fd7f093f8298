"""Leaves of a program's file what goes to the device: a vendor's sample holds its host code too.

Functions stay that are `__global__` or `__device__` (or constexpr, which both sides may call); other
functions and variables go, line by line, so that reports still name the author's lines. Headers beside
the file are put in its place; those of the toolkit and of the language stay, all others go. Shared
arrays start at multiples of 16 bytes, where vendors' compilers put them and their samples want them.
"""

from __future__ import annotations

import re
from pathlib import Path

from tile2c.runtime.emulate.text.tokens import Token, join, matching, tokenize

_DEVICE = {"__global__", "__device__", "__constant__", "constexpr", "consteval"}
_DECLARES = {"struct", "class", "union", "enum", "using", "typedef", "static_assert", "concept"}
_ALIGNED = "__shared__ __align__(16)"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"][^\n]*', re.MULTILINE)
# Without those that the model of a device has itself: mathematics, assert, printf.
_LANGUAGE = {
    "cstdint", "cstddef", "cfloat", "climits", "type_traits", "limits", "utility",
    "stdint.h", "stddef.h", "float.h", "limits.h",
}  # fmt: skip


def device_part(path: Path, toolkit: Path) -> str:
    """The device's part of the file at `path`; `toolkit` holds the headers of the emulated one."""
    return _device_code(_with_headers(path, "kernel", toolkit, set()))


def _with_headers(path: Path, called: str, toolkit: Path, seen: set[Path]) -> str:
    """The text with headers beside it in their place, each once. Lines say whose they are: `called`."""
    seen.add(path.resolve())
    text = path.read_text(encoding="utf-8", errors="replace")

    def one(match: re.Match[str]) -> str:
        quoted, name = match[1] == '"', match[2]
        beside = path.parent / name
        if quoted and beside.is_file():
            if beside.resolve() in seen:
                return ""
            inner = _with_headers(beside, name, toolkit, seen)
            back = text.count("\n", 0, match.start()) + 2
            return f'#line 1 "{name}"\n{inner}\n#line {back} "{called}"'
        return match[0] if name in _LANGUAGE or (toolkit / name).is_file() else ""

    return _INCLUDE.sub(one, text)


def _device_code(text: str) -> str:
    spliced = re.sub(
        r"^[ \t]*#(?:\\\n|[^\n])*", lambda found: _one_line(found[0]), text, flags=re.MULTILINE
    )
    return "".join(_items(tokenize(spliced)))


def _one_line(directive: str) -> str:
    """A directive without continuation lines, which follow it as empty ones."""
    return directive.lstrip().replace("\\\n", " ") + "\n" * directive.count("\\\n")


def _items(tokens: list[Token]) -> list[str]:
    """The declarations of a file or namespace that stay, in order; of the others, the ends of lines."""
    found: list[str] = []
    start = at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.kind == "mark_line":
            found += [_kept(tokens[start:at]), token.text]
            start = at = at + 1
        elif token.text == "{" and _opens_namespace(tokens[start:at]):
            end = matching(tokens, at)
            found += [join(tokens[start : at + 1]), *_items(tokens[at + 1 : end]), tokens[end].text]
            start = at = end + 1
        elif token.text == "{":
            end = matching(tokens, at)
            head = {x.text for x in tokens[start:at]}
            at = end + 1
            if head & _DECLARES or "=" in head:  # up to the semicolon
                while at < len(tokens) and tokens[at].text != ";":
                    at += 1
                at += 1
            found.append(_kept(tokens[start:at]))
            start = at
        elif token.text == "(":
            at = matching(tokens, at) + 1
        elif token.text == ";":
            at += 1
            found.append(_kept(tokens[start:at]))
            start = at
        else:
            at += 1
    found.append(_kept(tokens[start:]))
    return found


def _opens_namespace(head: list[Token]) -> bool:
    words = [token.text for token in head if not token.is_blank]
    return "namespace" in words or words[-2:] == ["extern", '"C"']


def _kept(tokens: list[Token]) -> str:
    words = [token.text for token in tokens if not token.is_blank]
    head = words[: words.index("{")] if "{" in words else words
    plain = "const" in head and "(" not in head  # `const int N = 10;`
    if set(head) & (_DEVICE | _DECLARES) or plain:
        return "".join(_ALIGNED if x.text == "__shared__" else x.text for x in tokens)
    return "\n" * join(tokens).count("\n")
