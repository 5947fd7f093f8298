"""The comment block at the top of a kernel file, and what the text says about itself.

It is the line that names the kernel and, below it, lines that start with `//   `, one of which
ends in `by tile2c VERSION`. A header that differs makes no file stale; edits made in it are merged
like all others, but for the version and the digest, which are always those of the new text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from tile2c.transpile.record import record

DIGEST_LENGTH = 12  # hexadecimal digits, as the header shows them

_MAKER = re.compile(r"^// .*\bby tile2c \S+\s*$")
_REST = re.compile(r"^//   ")
_DIGEST_LINE = re.compile(r"^(//\s+text\s+sha256)(?:[ \t]+(?!\()\S+)?([ \t]*\(.*)?$", re.MULTILINE)
_WRITTEN = re.compile(r"^(//\s+text\s+sha256[ \t]+)([0-9a-f]{12})\b", re.MULTILINE)
_VERSION = re.compile(r"^(// .*\bby tile2c )(\S+)", re.MULTILINE)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_GOES_ON = "//            "  # a line of the header that goes on with the one above


@record
class Parts:
    """The lines of a text before its header, the header's, and those after it."""

    before: tuple[str, ...]
    header: tuple[str, ...]
    after: tuple[str, ...]


def normalized(text: str) -> str:
    """The text with `\\n` line ends and without a byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a text with normalized line ends, each with its own; only `\\n` ends a line."""
    return tuple(_LINE.findall(text))


def split(text: str) -> Parts:
    """Cuts a text with normalized line ends; without a header, everything is `after`."""
    lines = lines_of(text)
    for index, line in enumerate(lines):
        if _MAKER.match(line.rstrip("\n")):
            first, end = index, index + 1
            while first > 0 and _REST.match(lines[first]):
                first -= 1
            if not lines[first].startswith("// "):
                first += 1
            while end < len(lines) and _REST.match(lines[end]):
                end += 1
            return Parts(lines[:first], lines[first:end], lines[end:])
    return Parts((), (), lines)


def body(text: str) -> str:
    """What counts as the kernel's text: all but the header, line ends normalized."""
    parts = split(normalized(text))
    return "".join((*parts.before, *parts.after))


def headed(text: str, other: str) -> str:
    """The text under the header of another one, line ends normalized."""
    own, parts = split(normalized(text)), split(normalized(other))
    return "".join((*own.before, *parts.header, *own.after))


def digest(text: str) -> str:
    """First digits of the sha256 over the text without its digest line, line ends normalized."""
    lines = lines_of(normalized(text))
    kept = [line for line in lines if not _DIGEST_LINE.match(line.rstrip("\n"))]
    content = "".join(kept).encode("utf-8", "surrogateescape")
    return hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH]


def sign(text: str) -> str:
    """The text with its own digest filled in; a text without a digest line stays as it is."""
    found = digest(text)
    return _DIGEST_LINE.sub(lambda match: f"{match[1]} {found}{match[2] or ''}", text, count=1)


def is_as_generated(text: str) -> bool:
    """Whether the digest in the header is that of the text, so that nobody edited it."""
    return written_digest(text) == digest(text)


def neutral(text: str, version: str, digest: str) -> str:
    """The text with these words in place of its version and of its digest (line ends normalized)."""
    text = _VERSION.sub(lambda match: match[1] + version, text, count=1)
    return _WRITTEN.sub(lambda match: match[1] + digest, text, count=1)


def version(text: str) -> str:
    """The version in the header; empty without one."""
    found = _VERSION.search(normalized(text))
    return found[2] if found else ""


def written_digest(text: str) -> str:
    """The digest in the header, whatever the text is; empty without one."""
    found = _WRITTEN.search(normalized(text))
    return found[2] if found else ""


def digest_remark(text: str) -> str:
    """What stands behind the digest: the digest does not cover its own line."""
    found = _DIGEST_LINE.search(normalized(text))
    return (found[2] or "") if found else ""


def compile_command(text: str) -> str | None:
    """The command in the header's `compile` line, or None without one."""
    return entry(split(normalized(text)).header, "compile")


def entry(lines: Sequence[str], word: str) -> str | None:
    """What the header's lines say behind a word, on one line; None without it."""
    found: list[str] = []
    for line in lines[_title_lines(lines) :]:
        if found and line.startswith(_GOES_ON):
            found.append(line.removeprefix(_GOES_ON).strip())
        elif found:
            break
        elif match := re.match(rf"//\s+{word}[ \t]+(.+)", line):
            found.append(match[1].strip())
    return " ".join(found) or None


def title(lines: Sequence[str]) -> str:
    """What the header's lines say first: the kernel's name and what it does."""
    return "".join(lines[: _title_lines(lines)]).rstrip("\n")


def _title_lines(lines: Sequence[str]) -> int:
    """How many lines stand in front of the one that says what made the file."""
    made = (k for k, line in enumerate(lines) if _MAKER.match(line.rstrip("\n")))
    return next(made, len(lines))


def has_conflict_marks(text: str) -> bool:
    """Whether lines as git marks conflicts are in the text."""
    awaited = iter(("<<<<<<<", "=======", ">>>>>>>"))
    mark = next(awaited)
    for line in normalized(text).split("\n"):
        if line == mark or line.startswith(mark + " "):
            following = next(awaited, None)
            if following is None:
                return True
            mark = following
    return False
