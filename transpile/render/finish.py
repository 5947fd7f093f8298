"""What depends on the length of a line: signatures, short functions, long comments.

Templates lay out one function in its longest form; here its first lines get the form that
clang-format keeps, so that nobody's formatter changes a generated file (see `.clang-format`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from tile2c.transpile.render.long_lines import break_formula

WIDTH = 100
_MARK = re.compile("[\x01\x02]\\d+\x03")  # see marks.py: invisible in the end
_BREAK = re.compile("(?<![-+*/%&|^=<>]) (?![-+*/%&|^=<>])")  # not inside a formula
_SPACE = re.compile(r" (?![^\[\]]*\])")  # not inside a subscript
_TEMPLATE = re.compile(r"(?<=\w)<[^<>()]*>(?=\()")  # its commas are not between arguments
_OPTION = re.compile(r""" (?=-)(?=(?:[^'"]|'[^']*'|"[^"]*")*$)""")  # in no quotes
_PROSE = re.compile(r"[a-z][^()\[\]=<>]*")  # goes on with a sentence: no statement that is quoted
_CHOICE = re.compile(r"(?:\x01\d+\x03)*if (?:constexpr )?\([^\n]*\{(?:  //[^\n]*)?$", re.MULTILINE)
_SHORT = re.compile(r"^([^/\s#].*\)) \{\n    ([^\n]+[;}])\n\}$", re.MULTILINE)


def finish(text: str) -> str:
    """The text of one top-level function or helper, its long lines broken."""
    return short_functions(signatures(remarks(comments(text))))


def comments(text: str) -> str:
    """Comments between functions, broken between words."""
    found: list[str] = []
    for is_comment, group in groupby(text.split("\n"), lambda line: line.startswith("// ")):
        lines = list(group)
        if is_comment and any(len(line) > WIDTH for line in lines):
            lines = [comment(" ".join(line[3:] for line in lines), WIDTH)]
        found += lines
    return "\n".join(found)


def comment(text: str, columns: int) -> str:
    """The text as `//` lines no wider than `columns`."""
    lines, line = [], "//"
    words = [
        part
        for word in _BREAK.split(text)
        for part in (_SPACE.split(word) if len(word) + 3 > columns else [word])
    ]
    for word in words:
        if len(line) + 1 + len(word) > columns and line != "//":
            lines.append(line)
            line = "//"
        line += f" {word}"
    return "\n".join([*lines, line])


def flowing(lines: Sequence[str], columns: int) -> list[str]:
    """Lines of a comment; one that has to be broken flows on into the rest of its sentence."""
    found: list[str] = []
    for line in lines:
        broken = bool(found) and len(found[-1]) + 3 > columns and found[-1][-1] not in ".:;!?"
        if broken and _PROSE.fullmatch(line):
            found[-1] += f" {line}"
        else:
            found.append(line)
    return found


def chained(text: str, columns: int) -> str:
    """The text of a choice that stands alone, to go on behind `else`; "" where it cannot."""
    found = _CHOICE.match(text)
    fits = found is not None and len(_MARK.sub("", f"}} else {found[0]}")) <= columns
    return text if fits else ""


def title(name: str, summary: str) -> str:
    """The first words of a file without its `// `; where they go on, as lines of its head."""
    first, *rest = comment(f"{name}: {summary}" if summary else name, WIDTH).split("\n")
    more = comment(" ".join(line[3:] for line in rest), WIDTH - 2).split("\n") if rest else []
    return "\n".join([first[3:], *(f"//   {line[3:]}" for line in more)])


def head(lines: Sequence[str]) -> list[str]:
    """The lines of a file's first comment, `word     text`; commands are broken before options."""
    found: list[str] = []
    for line in lines:
        if len(line) <= WIDTH - 5:
            found.append(line)
            continue
        if line.startswith(("compile ", "again ")):
            first, *rest = _command(line[9:], WIDTH - 5 - 9)
        else:
            first, *rest = (x[3:] for x in comment(line[9:], WIDTH - 5 - 9 + 3).split("\n"))
        found += [line[:9] + first, *(" " * 9 + part for part in rest)]
    return found


def _command(text: str, columns: int) -> list[str]:
    """The command in lines no wider than `columns` where its options, with what follows them, allow it."""
    lines: list[str] = []
    for part in _OPTION.split(text):
        if lines and len(lines[-1]) + 1 + len(part) <= columns:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines


def remarks(text: str) -> str:
    """A remark behind a statement goes above it where the line would pass the width."""
    found: list[str] = []
    for line in text.split("\n"):
        code, _, remark = line.partition("  // ")
        if remark and code.endswith(";") and len(_MARK.sub("", line)) > WIDTH:
            indent = code[: len(code) - len(code.lstrip())]
            above = comment(remark, WIDTH - len(indent)).split("\n")
            found += [indent + part for part in above]
            line = code
        found.append(line)
    return "\n".join(found)


def signatures(text: str) -> str:
    """Parameters one a line when they have a remark, else side by side.

    They stand under the first one, or, if a line would pass the width, four columns in.
    """
    lines = text.split("\n")
    found: list[str] = []
    place = 0
    while place < len(lines):
        end = _end_of_signature(lines, place)
        if end is None:
            found.append(lines[place])
            place += 1
            continue
        params = [param for line in lines[place + 1 : end + 1] for param in _params(line.strip())]
        found += _signature(lines[place], params)
        place = end + 1
    return "\n".join(found)


def _end_of_signature(lines: list[str], start: int) -> int | None:
    head = lines[start]
    if not head.endswith("(") or head.startswith((" ", "//", "#")):
        return None
    for place in range(start + 1, len(lines)):
        if lines[place].split("  //")[0].endswith((") {", ");")):
            return place
    return None


def _params(line: str) -> list[str]:
    """One parameter with its remark, or several without."""
    return [line] if "//" in line else re.split(r"(?<=,) (?![^<]*>)", line)


def _signature(head: str, params: list[str]) -> list[str]:
    aligned = _pack(params, WIDTH - len(head))
    if all(len(line) <= WIDTH - len(head) for line in aligned):
        return [head + aligned[0], *(" " * len(head) + line for line in aligned[1:])]
    return [head, *(f"    {line}" for line in _pack(params, WIDTH - 4))]


def _pack(params: list[str], columns: int) -> list[str]:
    """Neighbours without a remark share a line while they fit."""
    lines: list[str] = []
    for param in params:
        joins = lines and "//" not in lines[-1] and len(lines[-1]) + 1 + len(param) <= columns
        if joins:
            lines[-1] += f" {param}"
        else:
            lines.append(param)
    return lines


def short_functions(text: str) -> str:
    """A function of one statement goes on one line if it fits, unless it is a template."""

    def joined(match: re.Match[str]) -> str:
        line = f"{match[1]} {{ {match[2]} }}"
        above = match.string[: match.start()].rstrip("\n").rpartition("\n")[2]
        if above.startswith("template"):
            return match[0]
        fits = len(_MARK.sub("", line)) <= WIDTH and "//" not in line and "asm" not in match[1]
        return line if fits and match[1].count("(") == match[1].count(")") else match[0]

    return _SHORT.sub(joined, text)


# ---- statements


def wrap(text: str, columns: int) -> str:
    """A statement of one line, broken where clang-format breaks it.

    That is after the assignment if the value then fits, else between the arguments of the last
    call, else between operands.
    """
    if len(text) <= columns:
        return text
    value = _value(text)
    if value:
        target, rest = text[:value].rstrip(), text[value:]
        if len(rest) + 4 <= columns and "{" not in rest:
            return f"{break_formula(target, columns)}\n    {rest}"
    for broken in (
        _between(text, ","),
        _between(text, "&&"),
        _between(text, "||"),
        _operands(text),
    ):
        if not broken:
            continue
        lines, below = _packed(*broken, columns), _below(*broken, columns)
        fits = all(len(line) <= columns for line in lines)
        if fits and not (below and len(below) < len(lines)):
            return "\n".join(lines)
        if below:
            return "\n".join(below)
    found = _in_subscript(text, value, columns)
    return "\n".join(found) if found else break_formula(text, columns, value)


def _below(head: str, pieces: list[str], columns: int) -> list[str] | None:
    """Arguments in the lines below their call; None where that does not fit or is no call."""
    if not head.endswith("(") or (not head[-2:-1].isidentifier() and not head.endswith(">(")):
        return None
    lines = _packed("    ", pieces, columns)
    return [head, *lines] if all(len(line) <= columns for line in lines) else None


def _in_subscript(text: str, value: int, columns: int) -> list[str] | None:
    """A long address broken between the terms of its one subscript, or None."""
    if not value or not text.endswith("];"):
        return None
    for before, indent in ((text[:value], ""), ("", "    ")):
        rest = before + text[value:]
        start = rest.find("[", len(before)) + 1
        broken = _terms(rest, start) if start else None
        lines = _packed(*broken, columns - len(indent)) if broken else []
        if lines and all(len(indent + line) <= columns for line in lines):
            found = [indent + line for line in lines]
            return found if before else [text[:value].rstrip(), *found]
    return None


def _value(text: str) -> int:
    """Where the assigned value begins; 0 if the statement assigns nothing."""
    depth = 0
    for place, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0 and text[place : place + 2] == "= " and text[place - 1] in " +-*/%&|^<>":
            return place + 2
    return 0


def _between(text: str, separator: str) -> tuple[str, list[str]] | None:
    """The head of the last outermost parenthesis, and what stands between its separators."""
    start = _outermost(text, call=separator == ",")
    if start is None:
        return None
    pieces, depth, piece = [], 0, ""
    inside = {k for found in _TEMPLATE.finditer(text) for k in range(*found.span())}
    for place, char in enumerate(text[start:], start):
        depth += (char in "([{") - (char in ")]}")
        piece += char
        ends = text[place - len(separator) + 1 : place + 1] == separator
        if depth == 0 and ends and place not in inside:
            pieces.append(piece.strip())
            piece = ""
    pieces.append(piece.strip())
    return (text[:start], pieces) if len(pieces) > 1 else None


def _outermost(text: str, *, call: bool) -> int | None:
    """Behind the last parenthesis that no other one encloses; of a call, or of a condition."""
    depth, start = 0, None
    for place, char in enumerate(text):
        if char == "(" and depth == 0 and place:
            named = text[place - 1].isalnum() or text[place - 1] in "_>"
            if named == call:
                start = place + 1
        depth += (char in "([{") - (char in ")]}")
    return start


def _operands(text: str) -> tuple[str, list[str]] | None:
    """The statement up to its value, and the terms of the value."""
    start = _value(text) or (len("return ") if text.startswith("return ") else 0)
    return _terms(text, start) if start else None


def _terms(text: str, start: int) -> tuple[str, list[str]] | None:
    """What stands before `start`, and the terms of the sum behind it."""
    pieces, depth, piece = [], 0, ""
    for place, char in enumerate(text[start:], start):
        depth += (char in "([{") - (char in ")]}")
        piece += char
        if depth == 0 and text[place - 1 : place + 2] in (" + ", " - "):
            pieces.append(piece.strip())
            piece = ""
    pieces.append(piece.strip())
    return (text[:start], pieces) if len(pieces) > 1 else None


def _packed(head: str, pieces: list[str], columns: int) -> list[str]:
    """The pieces behind the head, and under the first of them."""
    lines = [head + pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + 1 + len(piece) <= columns:
            lines[-1] += f" {piece}"
        else:
            lines.append(" " * len(head) + piece)
    return lines
