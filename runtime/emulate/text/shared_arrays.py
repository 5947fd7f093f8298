"""Places `__shared__` declarations in the block's arena, so that each has a name and a size."""

from __future__ import annotations

from dataclasses import dataclass

from tile2c.runtime.emulate.text.asm import TextError
from tile2c.runtime.emulate.text.tokens import Token, code, join, matching, split

_STARTS = {";", "{", "}"}
_DROPPED = {"__shared__", "static", "extern", "__device__"}


@dataclass(frozen=True, slots=True)
class Declaration:
    """`extern __shared__ T x[], ...;` from its first token to the semicolon."""

    start: int
    end: int
    text: str


def _start_of(tokens: list[Token], at: int) -> int:
    """The first token of the declaration that holds token `at`."""
    start = at
    while start > 0:
        before = tokens[start - 1]
        if before.kind in {"comment", "mark_line"}:
            break
        if before.kind == "punct" and before.text in _STARTS:
            break
        if before.text == ":" and tokens[start - 2].text not in {":"}:
            break
        start -= 1
    while tokens[start].is_blank:
        start += 1
    return start


def _take_alignment(tokens: list[Token]) -> tuple[list[Token], list[str]]:
    """Removes alignas(n), __align__(n), __attribute__((aligned(n))); the n's."""
    rest: list[Token] = []
    found: list[str] = []
    at = 0
    while at < len(tokens):
        if tokens[at].text in {"alignas", "__align__", "__attribute__"} and at + 1 < len(tokens):
            end = matching(tokens, at + 1)
            inside = tokens[at + 2 : end]
            if tokens[at].text == "__attribute__":
                words = [token.text for token in inside]
                first = words.index("aligned") + 1 if "aligned" in words else None
                if first is not None:
                    close = matching(inside, first)
                    found.append(join(inside[first + 1 : close]))
            else:
                found.append(join(inside))
            at = end + 1
            continue
        rest.append(tokens[at])
        at += 1
    return rest, found


def _name_at(declarator: list[Token]) -> int:
    """Index of the declared name: the last identifier before the first `[` or the end."""
    depth = 0
    name = -1
    for index, token in enumerate(declarator):
        if token.kind == "punct":
            depth += (token.text in "<({") - (token.text in ">)}")
            if token.text == "[" and depth == 0:
                break
        elif token.kind == "name" and depth == 0:
            name = index
    return name


def _declare(
    kind: str, name: str, dims: str, align: list[str], dynamic: bool, at_file: bool
) -> str:
    wanted = f"{align[0]}" if len(align) == 1 else ""
    if len(align) > 1:
        wanted = "emu::larger(" + ", ".join(align) + ")"
    if dynamic:
        inner = dims[dims.index("]") + 1 :] if "[" in dims else ""
        element = f"{kind}{inner}"
        extra = f", {wanted}" if wanted else ""
        value = f'emu::dynamic_shared<{element}>("{name}"{extra})'
        return f"auto* const {name} = {value}" if not at_file else f"\n#define {name} ({value})\n"
    extra = f", {wanted}" if wanted else ""
    value = f'emu::shared<{kind}{dims}>("{name}", EMU_SITE{extra})'
    return f"auto& {name} = {value}" if not at_file else f"\n#define {name} ({value})\n"


def place(tokens: list[Token], at: int, at_file: bool) -> Declaration:
    """Rewrites the declaration that holds the `__shared__` at index `at`.

    at_file  it stands outside all functions; the name becomes a macro then
    """
    start = _start_of(tokens, at)
    end = at
    while tokens[end].text != ";":
        end = matching(tokens, end) if tokens[end].text in {"{", "(", "["} else end
        end += 1
        if end >= len(tokens):
            raise TextError(tokens[at].line, "a __shared__ declaration without an end")
    body = code(tokens[start:end])
    dynamic = any(token.text == "extern" for token in body)
    body = [token for token in body if token.text not in _DROPPED]
    body, align = _take_alignment(body)
    parts = split_declarators(body)
    first = _name_at(parts[0])
    if first < 1:
        raise TextError(tokens[at].line, "a __shared__ declaration that is not understood")
    kind = " ".join(token.text for token in parts[0][:first]).replace(" : : ", "::")
    made = []
    base = kind.rstrip(" *")
    for index, part in enumerate(parts):
        name_at = first if index == 0 else _name_at(part)
        dims = join(part[name_at + 1 :])
        if "=" in dims or "{" in dims:
            raise TextError(tokens[at].line, "a __shared__ variable cannot have an initializer")
        if index:
            kind = base + "".join(token.text for token in part[:name_at])
        made.append(_declare(kind, part[name_at].text, dims, align, dynamic, at_file))
    lines = "".join(token.text for token in tokens[start:end] if "\n" in token.text).count("\n")
    text = "; ".join(made)
    if at_file:
        text = "".join(made) + f'#line {tokens[end].line} "kernel"\n'
        return Declaration(start, end, text)
    return Declaration(start, end, text + "\n" * lines)


def split_declarators(tokens: list[Token]) -> list[list[Token]]:
    """`T a[2], b` at its commas, those of template arguments left alone."""
    parts: list[list[Token]] = []
    depth = 0
    for part in split(tokens, ","):
        if depth > 0:
            parts[-1] += [Token("punct", ",", part[0].line if part else 0), *part]
        else:
            parts.append(part)
        depth += sum((t.text == "<") - (t.text == ">") for t in part if t.kind == "punct")
    return parts
