"""Finds the project file and understands it; every mistake is reported at its place."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tile2c.transpile.diagnostics import Diagnostics, Span
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.project.forms import KernelSet, Project
from tile2c.transpile.project.places import KeyPath, Places
from tile2c.transpile.project.values import Table

OWN_FILE = "tile2c.toml"
SHARED_FILE = "pyproject.toml"

_COMMON = ("out", "targets", "launcher", "license-header", "defines", "promises")
_WHOLE = (*_COMMON, "kernels", "formatter")
_SET = (*_COMMON, "source", "names", "specialisations")
_PROMISE = re.compile(r"[A-Za-z_][\w.]*\s*%\s*\d+\s*={1,2}\s*0")
_POSITION = re.compile(r"\(at line (\d+), column (\d+)\)$")


def find(start: Path) -> Path | None:
    """The nearest tile2c.toml, or pyproject.toml with a table for tile2c, from `start` upward."""
    here = Path(os.path.abspath(start))
    for folder in (here, *here.parents):
        if (folder / OWN_FILE).is_file():
            return folder / OWN_FILE
        shared = folder / SHARED_FILE
        if shared.is_file() and "tool.tile2c" in shared.read_text("utf-8", errors="replace"):
            return shared
    return None


def read(path: Path, diagnostics: Diagnostics, into: Path | None = None) -> Project | None:
    """The project; None after errors, which are in `diagnostics`.

    into  the folder that output folders are in, where it is not the file's own
    Raises InputError for a file that is no TOML.
    """
    text = _text(path)
    data: Mapping[str, object] | None = _parsed(text, path)
    keys: KeyPath = ()
    if path.name == SHARED_FILE:
        keys = ("tool", "tile2c")
        tool = data.get("tool") if data is not None else None
        data = tool.get("tile2c") if isinstance(tool, dict) else None
    places = Places(text, path.as_posix())
    if not isinstance(data, dict):
        raise failure(
            "T2C630",
            f"{path.name} has no table tool.tile2c",
            places.value(keys),
            help='[tool.tile2c] with out = "kernels", then [[tool.tile2c.kernels]]',
        )
    table = Table(data, keys, places, diagnostics, "tile2c")
    before = len(diagnostics.items)
    reader = _Reader(path, table, into if into is not None else path.parent)
    project = reader.project()
    return project if len(diagnostics.items) == before else None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8").replace("\r\n", "\n").removeprefix("\ufeff")
    except OSError as error:
        raise failure("T2C630", f"{path} cannot be read: {error.strerror}", None) from error
    except UnicodeDecodeError as error:
        raise failure("T2C630", f"{path} is not text in UTF-8", None) from error


def _parsed(text: str, path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        where = _POSITION.search(message)
        line, col = (int(where[1]), int(where[2]) - 1) if where else (text.count("\n") + 1, 0)
        span = Span(path.as_posix(), line, col, line, col + 1)
        what = _POSITION.sub("", message).replace("(at end of document)", "").strip()
        what = what[:1].lower() + what[1:]
        raise failure("T2C630", f"{path.name} is no TOML: {what}", span) from error
    except RecursionError as error:
        raise failure("T2C630", f"{path.name} nests too deeply", None) from error


class _Reader:
    """Reads the tables of one file."""

    def __init__(self, path: Path, table: Table, outside: Path) -> None:
        self.path, self.table, self.outside = path, table, outside
        self.folder = path.parent
        self.inputs: list[Path] = []
        self.own: dict[int, tuple[str, ...]] = {}

    def project(self) -> Project:
        table = self.table
        table.refuse_unknown(_WHOLE)
        sets = tuple(
            made for part in table.tables("kernels") if (made := self._set(part)) is not None
        )
        if table.data.get("kernels", []) == []:
            span = (
                table.span("kernels") if "kernels" in table.data else table.places.value(table.path)
            )
            example = "[[tool.tile2c.kernels]]" if table.path else "[[kernels]]"
            table.diagnostics.error(
                "T2C633",
                "the project has no kernels",
                span,
                help=f'{example} with source = "gemm.py"',
            )
        shared: dict[str, Span] = {}
        self._promises(table, shared)
        if (inner := table.table("defines")) is not None:
            self._defines(inner, shared)
        formatter = table.texts("formatter") or ()
        if len(formatter) == 1 and isinstance(table.data.get("formatter"), str):
            formatter = tuple(formatter[0].split())
        return Project(
            file=self.path,
            folder=self.folder,
            sets=sets,
            shared=shared,
            formatter=formatter,
            formatter_span=table.span("formatter") if formatter else None,
            inputs=tuple(dict.fromkeys(self.inputs)),
        )

    def _set(self, part: Table) -> KernelSet | None:
        part.refuse_unknown(_SET)
        before = len(part.diagnostics.items)
        sources = self._sources(part)
        names = part.texts("names") or ()
        targets = self._targets(part)
        out = self._out(part)
        licence = self._licence(part)
        launcher = part.flag("launcher")
        shared = self.table.flag("launcher") if launcher is None else launcher
        defined: dict[str, Span] = {}
        variants = self._variants(part, defined)
        if len(part.diagnostics.items) > before or out is None:
            return None
        return KernelSet(
            sources=sources,
            names=names,
            targets=targets,
            out=out,
            variants=variants,
            launcher=bool(shared),
            licence=licence,
            span=part.span("source"),
            defined=defined,
            named={
                name: part.span("names", n) if isinstance(part.data["names"], list)
                else part.span("names")
                for n, name in enumerate(names)
            },
        )  # fmt: skip

    def _from(self, part: Table, key: str) -> Table:
        """The table that says `key`: this one, or the whole file's."""
        return part if key in part.data else self.table

    def _sources(self, part: Table) -> tuple[Path, ...]:
        if part.data.get("source", []) == []:
            part.diagnostics.error(
                "T2C633",
                "this table of kernels has no source",
                part.span("source") if "source" in part.data else part.places.value(part.path),
                help='source = "gemm.py"',
            )
        found: list[Path] = []
        for number, name in enumerate(part.texts("source") or ()):
            path = self.folder / name
            if path.is_file():
                found.append(path)
                continue
            place = ("source", number) if isinstance(part.data["source"], list) else ("source",)
            self._missing(part, path, name, place)
        return tuple(found)

    def _missing(self, part: Table, path: Path, name: str, place: tuple[str | int, ...]) -> None:
        from tile2c.transpile.cli.status import nearest

        beside = [item.name for item in path.parent.glob("*.py")] if path.parent.is_dir() else []
        near = nearest(path.name, sorted(beside))
        what = "is a folder, not a file" if path.is_dir() else "is not there"
        part.diagnostics.error(
            "T2C634",
            f"{name} {what}",
            part.span(*place),
            help=f"did you mean {Path(name).with_name(near).as_posix()}?" if near else None,
        )

    def _targets(self, part: Table) -> tuple[str, ...]:
        from tile2c.transpile import targets
        from tile2c.transpile.cli.generate import DEFAULT_TARGET
        from tile2c.transpile.cli.status import suggestion

        table = self._from(part, "targets")
        given = table.texts("targets")
        found: list[str] = []
        for number, name in enumerate((DEFAULT_TARGET,) if given is None else given):
            try:
                full = targets.find(name).name
            except targets.UnknownTarget:
                known = [target.name for target in targets.all_targets()]
                single = isinstance(table.data["targets"], str)
                place = ("targets",) if single else ("targets", number)
                near = targets.meant(name)
                help = f"did you mean {near}?" if near else suggestion(name, known)
                table.wrong(f"unknown target {name!r}", *place, help=help)
                continue
            if full not in found:
                found.append(full)
        if given == ():
            table.wrong("targets is empty", "targets", help=f'targets = ["{DEFAULT_TARGET}"]')
        return tuple(found)

    def _out(self, part: Table) -> Path | None:
        table = self._from(part, "out")
        name = table.text("out")
        if name is None:
            if "out" not in table.data:
                part.diagnostics.error(
                    "T2C633",
                    "no output folder is named",
                    part.places.value(part.path),
                    help='out = "kernels"',
                )
            return None
        if Path(name).is_absolute() or ".." in Path(name).parts:
            table.wrong(f"out is {name}, which is not inside the project's folder", "out")
            return None
        path = Path(os.path.normpath(self.outside / name))
        if path.exists() and not path.is_dir():
            table.wrong(f"out is {name}, which is a file, not a folder", "out")
            return None
        return path

    def _licence(self, part: Table) -> tuple[str, ...]:
        from tile2c.transpile.read.licence import as_comment

        table = self._from(part, "license-header")
        name = table.text("license-header")
        if name is None:
            return ()
        path = self.folder / name
        try:
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            what = "is not text in UTF-8" if isinstance(error, ValueError) else "cannot be read"
            table.diagnostics.error(
                "T2C634", f"{name} {what}", table.span("license-header")
            )  # fmt: skip
            return ()
        self.inputs.append(path)
        return as_comment(text)

    def _variants(self, part: Table, defined: dict[str, Span]) -> tuple[tuple[str, ...], ...]:
        """The `-D` options of each specialisation: the file's, the table's, then its own."""
        common: dict[str, str] = {}
        for table in (self.table, part):
            inner = table.table("defines")
            if inner is not None:
                common |= self._defines(inner, defined)
        promises = self._promises(self.table, defined) + self._promises(part, defined)
        tables = part.tables("specialisations")
        if "specialisations" in part.data and not tables and part.data["specialisations"] == []:
            part.wrong("specialisations is empty", "specialisations")
        every = [common | self._defines(table, defined) for table in tables] or [common]
        found = [(*(f"{k}={v}" for k, v in values.items()), *promises) for values in every]
        for number, variant in enumerate(found):
            if variant in found[:number]:
                part.wrong("this specialisation is there twice", "specialisations", number)
            self._check_defines(part, variant)
        return tuple(found)

    def _check_defines(self, part: Table, variant: Sequence[str]) -> None:
        from tile2c.transpile.stage.defines import DefineError, parse_defines

        try:
            parse_defines(variant)
        except DefineError as error:
            key = "specialisations" if "specialisations" in part.data else "defines"
            part.wrong(str(error), key)

    def _defines(self, table: Table, defined: dict[str, Span]) -> dict[str, str]:
        found: dict[str, str] = {}
        for key, value in table.data.items():
            if not re.fullmatch(r"(?:[A-Za-z_]\w*\.)?[A-Za-z_]\w*", key):
                table.wrong(f"{key} is no name of a parameter or size", key)
            elif isinstance(value, dict):
                table.wrong(f"{key} is a table, not a value", key)
            else:
                defined[key] = table.places.key((*table.path, key))
                found[key] = value if isinstance(value, str) else repr(value)
        return found

    def _promises(self, table: Table, defined: dict[str, Span]) -> tuple[str, ...]:
        found: list[str] = []
        single = isinstance(table.data.get("promises"), str)
        for number, text in enumerate(table.texts("promises") or ()):
            place = ("promises",) if single else ("promises", number)
            if not _PROMISE.fullmatch(text.strip()):
                help = "M % 16 == 0; other promises stand in the program: T.assume(M > 0)"
                table.wrong(f"{text!r} is no promise of divisibility", *place, help=help)
                continue
            name, _, divisor = text.replace("=", "").replace(" ", "").partition("%")
            defined.setdefault(name, table.span(*place))
            found.append(f"{name}%{divisor[:-1]}=0")
        return tuple(found)
