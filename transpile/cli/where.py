"""`tile2c where KERNEL.cu:LINE`: the tile statement that a line of a kernel file came from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tile2c.transpile.cli.report import Reporter, lines_of
from tile2c.transpile.cli.status import Status, UsageProblem
from tile2c.transpile.cli.together import no_such_file

if TYPE_CHECKING:
    from tile2c.transpile.cli.options import Command
    from tile2c.transpile.output.origins import Located, Place

EXAMPLES = """\
\b
Examples:
  tile2c where out/gemm.cu:130
  tile2c where out/gemm.cu:130 --source gemm.py

\b
The first line of the answer is FILE:LINE:COL: STATEMENT; the statements and the kernel around it
follow, indented. It works on edited files: a line is found by what it was when it was generated.
"""


def command() -> Command:
    """The command object; it only parses."""
    import click
    from tile2c.transpile.cli.options import CONTEXT, Command

    return Command(
        "where",
        usage="KERNEL.cu:LINE [options]",
        help="Names the source line that a line of a kernel file came from.",
        epilog=EXAMPLES,
        context_settings=CONTEXT,
        params=[
            click.Argument(["place"]),
            click.Option(
                ["--source"], metavar="INPUT.py", help="The tile program, if it has moved."
            ),
        ],
    )


def where(arguments: Sequence[str]) -> int:
    """Prints where a line came from and returns the exit status."""
    from tile2c.transpile.output.origins import locate

    with command().make_context("tile2c where", list(arguments)) as context:
        place, given = context.params["place"], context.params["source"]
    path, line = _parsed(place)
    found = locate(path, line)
    if found is None:
        raise UsageProblem(
            "T2C003",
            f"{path} is no kernel file that tile2c wrote",
            "name one that a tile2c.json beside or above it lists",
        )
    if line > found.lines:
        raise UsageProblem(
            "T2C001",
            f"{path} has {found.lines} lines, not {line}",
            f"tile2c where {path}:{found.lines}",
        )
    source = _source(found, given)
    print("\n".join(_answer(found, source)))
    _warn(found, source, Reporter("text"))
    return Status.DONE


def statement_of(path: Path, line: int) -> str | None:
    """`gemm.py:38:17: T.copy(…)` for a line of a kernel file, None where it is of no statement.

    Raises InputError where the manifest or the map cannot be read.
    """
    from tile2c.transpile.output.origins import locate

    found = locate(path, line)
    if found is None or not found.places:
        return None
    return _shown(found.places[0], _source(found, None), _named(found))


def _parsed(place: str) -> tuple[Path, int]:
    name, _, number = place.rpartition(":")
    if not name or not number.isdecimal() or int(number) < 1:
        file = name if name and Path(name).is_file() else place
        raise UsageProblem(
            "T2C001", f"{place} is not of the form KERNEL.cu:LINE", f"tile2c where {file}:1"
        )
    path = Path(name)
    if not path.is_file():
        raise no_such_file(path)
    return path, int(number)


def _source(found: Located, given: str | None) -> Path | None:
    """The tile program: the one given, the one remembered, or one near OUT; None without."""
    from tile2c.transpile.output.places import source_near

    if given is not None and not Path(given).is_file():
        raise no_such_file(Path(given), "--source")
    return Path(given) if given is not None else source_near(found.out, found.file, _named(found))


def _named(found: Located) -> str:
    source = found.entry.get("source")
    return str(source.get("file", "")) if isinstance(source, dict) else ""


def _answer(found: Located, source: Path | None) -> list[str]:
    shown = [_shown(place, source, _named(found)) for place in found.places]
    entry = found.entry.get("source")
    line = entry.get("line") if isinstance(entry, dict) else None
    kernel = f"kernel {found.entry['name']} ({found.entry['target']}), {_named(found)}:{line}"
    if not shown:
        return [f"{_path(source, _named(found))}:{line}: {found.file} has this line from no "
                f"statement of its own: {_kind(found.text)}", f"    in {kernel}"]  # fmt: skip
    return [shown[0], *(f"    in {text}" for text in (*shown[1:], kernel))]


def _kind(text: str) -> str:
    return "a comment" if text.lstrip().startswith("//") else "a declaration, helper or entry point"


def _shown(place: Place, source: Path | None, main: str) -> str:
    """`gemm.py:38:17: T.copy(…)`: the first line of the statement."""
    path = _path(source, place.file) if place.file == main else _beside(source, place.file)
    quoted = ""
    lines = lines_of(path)
    if place.line <= len(lines):
        end = place.end_col if place.end_line == place.line else None
        quoted = f": {lines[place.line - 1][place.col - 1 : end].rstrip()}"
    return f"{path}:{place.line}:{place.col}{quoted}"


def _path(source: Path | None, name: str) -> str:
    return _beside(None, name) if source is None else _near(source)


def _beside(source: Path | None, name: str) -> str:
    """A module that the source imports lies beside it, most likely."""
    if source is not None and (source.parent / name).is_file():
        return _near(source.parent / name)
    return name


def _near(path: Path) -> str:
    """As short as it can be said from here."""
    try:
        return path.resolve().relative_to(Path().resolve()).as_posix()
    except ValueError:
        return path.as_posix()


def _warn(found: Located, source: Path | None, reporter: Reporter) -> None:
    """What makes the answer less than sure."""
    entry = found.entry.get("source")
    sha256 = entry.get("sha256") if isinstance(entry, dict) else None
    if found.edited:
        reporter.done("this line was edited or added; its neighbours come from there")
    if source is None:
        reporter.done(f"{_named(found)} is not found, so nothing is quoted (--source INPUT.py)")
    elif hashlib.sha256(source.read_bytes()).hexdigest() != sha256:
        reporter.done(f"{_near(source)} has changed since {found.file} was generated")
