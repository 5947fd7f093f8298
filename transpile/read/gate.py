"""What stands in front of the parser: size, encoding, syntax, nesting."""

from __future__ import annotations

import ast
import codecs
import io
import re
import sys
import tokenize
import warnings

from tile2c.transpile.diagnostics import Diagnostics, Span
from tile2c.transpile.read.source import Comment

MOST_BYTES = 4 * 1024 * 1024
_PRAGMA = re.compile(r"#\s*(type:\s*ignore|noqa|fmt:|isort:|ruff:|pylint:|pragma:|yapf:|mypy:|!)")
_OF_LITERALS = ("(unicode error)", "(value error)", "bytes can only")  # libcst reads no literals
MOST_NESTING = 200  # deeper trees would overflow the stack of what reads them


def decode(data: bytes, name: str, diagnostics: Diagnostics) -> str | None:
    """The text of a file, line ends normalized; None after an error."""
    if len(data) > MOST_BYTES:
        message = f"the file has {len(data)} bytes; at most {MOST_BYTES} are read"
        diagnostics.error("T2C102", message, Span(name, 1, 0, 1, 0))
        return None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        kind = "UTF-32" if data.startswith(codecs.BOM_UTF32_LE) else "UTF-16"
        diagnostics.error(
            "T2C103",
            f"the file is {kind} text",
            Span(name, 1, 0, 1, 0),
            help="save the file as UTF-8",
        )
        return None
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        diagnostics.error("T2C103", "the file holds a NUL byte", Span(name, line, 0, line, 0))
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        diagnostics.error(
            "T2C103",
            f"byte 0x{data[error.start]:02x} is not UTF-8",
            Span(name, line, 0, line, 0),
            help="save the file as UTF-8",
        )
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse(text: str, name: str, diagnostics: Diagnostics) -> ast.Module | None:
    """The syntax tree; None after a syntax error or where brackets nest too deeply."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the user's own "invalid escape sequence" and the like
            tree = ast.parse(text, filename=name)
    except SyntaxError as error:
        line, col = error.lineno or 1, max((error.offset or 1) - 1, 0)
        end_line, end_col = error.end_lineno or line, max((error.end_offset or 0) - 1, col + 1)
        if "too many nested" in (error.msg or ""):
            _too_deep(name, line, diagnostics)
        else:
            span = Span(name, line, col, end_line, end_col)
            _not_python(error.msg or "", span, text, diagnostics)
        return None
    except (RecursionError, MemoryError, ValueError):
        _too_deep(name, _longest_statement(text), diagnostics)
        return None
    deepest = _line_nested_too_deeply(tree)
    if deepest is not None:
        _too_deep(name, deepest, diagnostics)
        return None
    return tree


def comments(text: str) -> tuple[dict[int, Comment], dict[int, Comment]]:
    """The comments for people, and those for tools, by line."""
    found: dict[int, Comment] = {}
    pragmas: dict[int, Comment] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, col = token.start
            own_line = not token.line[:col].strip()
            kind = pragmas if _PRAGMA.match(token.string) else found
            kind[line] = Comment(token.string.rstrip(), line, col, own_line)
    return found, pragmas


def _line_nested_too_deeply(tree: ast.Module) -> int | None:
    stack: list[tuple[ast.AST, int, int]] = [(tree, 0, 1)]
    while stack:
        node, depth, line = stack.pop()
        line = getattr(node, "lineno", line)
        if depth > MOST_NESTING:
            return line
        stack += [(child, depth + 1, line) for child in ast.iter_child_nodes(node)]
    return None


def _longest_statement(text: str) -> int:
    """The line where the statement of most words starts: the one that overflowed the parser."""
    start, words, longest = 1, 0, (0, 1)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT):
                longest = (
                    max(longest, (words, -start)) if token.type == tokenize.NEWLINE else longest
                )
                words = 0 if token.type == tokenize.NEWLINE else words
                continue
            if words == 0:
                start = token.start[0]
            words += 1
    except (tokenize.TokenError, SyntaxError):
        return 1
    return abs(longest[1])


def _not_python(message: str, span: Span, text: str, diagnostics: Diagnostics) -> None:
    """Python's own message, but where it speaks of settings of the interpreter that reads, or where
    only this interpreter is too old: `type V = …` and quotes inside f-strings came with 3.12."""
    if message.startswith("Exceeds the limit"):
        diagnostics.error(
            "T2C101",
            "this number has more digits than Python reads",
            span,
            help="no type of the language holds it: at most 20 digits fit an integer",
        )
        return
    if not message.startswith(_OF_LITERALS) and _is_newer_python(text):
        here = ".".join(str(part) for part in sys.version_info[:2])
        diagnostics.error(
            "T2C101",
            f"this is newer Python than {here}, with which tile2c runs here",
            span,
            help="run tile2c with the Python that the program is for",
        )
        return
    diagnostics.error("T2C101", f"this is not Python: {message}", span)


def _is_newer_python(text: str) -> bool:
    """Whether libcst, which reads every version's Python in one, takes what `ast` does not."""
    import libcst

    try:
        libcst.parse_module(text)
    except Exception:  # whatever it says, the file is not readable
        return False
    return True


def _too_deep(name: str, line: int, diagnostics: Diagnostics) -> None:
    diagnostics.error(
        "T2C104",
        f"the program nests more than {MOST_NESTING} levels deep here",
        Span(name, line, 0, line, 0),
        help="give parts of the expression names of their own",
    )
