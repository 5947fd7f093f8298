"""`tile2c emulate`: what a C++ program links to run the kernels of OUT on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from tile2c.transpile.cli.options import CONTEXT, Command
from tile2c.transpile.cli.report import Reporter
from tile2c.transpile.cli.status import Status, UsageProblem, suggestion
from tile2c.transpile.cli.together import check_folder_name, folder_above, refuse_marks
from tile2c.transpile.diagnostics.diagnostic import failure

if TYPE_CHECKING:
    from tile2c.runtime.records import KernelRecord

CHECKS = ("races", "memory")

EXAMPLES = """\
\b
Example:
  tile2c gemm.py -o out --launcher
  tile2c emulate out -o emulated
  g++ -std=c++17 -I out -I emulated/include/cuda main.cpp out/gemm_launch.cpp \\
      emulated/libtile2c_emulated.so -Wl,-rpath,'$ORIGIN/emulated' -o main

The program is the one that runs on a device: it includes the vendor's headers and calls the launcher.
Launchers in a vendor's own language (Ascend C, BANG C) are put into C++ in FOLDER: compile those.
"""


def command() -> Command:
    """The command object; it only parses, `emulate` acts."""
    return Command(
        "emulate",
        usage="OUT -o FOLDER [options]",
        help="Builds a library for C++ programs: a vendor's runtime and the kernels of OUT, emulated.",
        epilog=EXAMPLES,
        context_settings=CONTEXT,
        params=[
            click.Argument(["out"]),
            click.Option(["-o", "into"], metavar="FOLDER", required=True, help="Where it is put."),
            click.Option(["--target"], metavar="T", help="Which one, if OUT has several."),
            click.Option(
                ["--check"], metavar="races,memory", help="Checks of the emulator; slower."
            ),
        ],
    )


def emulate(arguments: list[str]) -> int:
    """Builds the library and says where it is."""
    with command().make_context("tile2c emulate", arguments) as context:
        values: dict[str, Any] = dict(context.params)
    from tile2c.runtime.emulate.host import build_library
    from tile2c.runtime.errors import BackendUnavailable, KernelError

    check_folder_name(values["into"])
    folder, checks = Path(values["out"]), _checks(values["check"])
    records = _records(folder, values["target"])
    for record in records:
        refuse_marks(folder / record.file)
    try:
        library = build_library(folder, records, Path(values["into"]), checks)
    except BackendUnavailable as error:
        raise failure("T2C702", str(error), None) from error
    except KernelError as error:
        raise failure("T2C701", str(error), None) from error
    reporter = Reporter("text")
    reporter.done(f"wrote {library.as_posix()}")
    for launcher in sorted(library.parent.glob("*_launch.cpp")):  # instead of the one in OUT
        reporter.done(f"wrote {launcher.as_posix()}")
    return Status.DONE


def _checks(text: str | None) -> frozenset[str]:
    found = [part.strip() for part in (text or "").split(",") if part.strip()]
    for part in found:
        if part not in CHECKS:
            raise UsageProblem("T2C001", f"--check {part}: no such check", suggestion(part, CHECKS))
    return frozenset(found)


def _records(folder: Path, target: str | None) -> tuple[KernelRecord, ...]:
    """The kernels of one target."""
    from tile2c.runtime.records import read_records

    try:
        records = read_records(folder)
    except FileNotFoundError as error:
        hint = folder_above(folder, "emulate")
        hint = hint or f"`tile2c INPUT.py -o {folder.as_posix()} --launcher` writes one"
        raise UsageProblem("T2C003", str(error), hint) from error
    except ValueError as error:
        raise failure("T2C607", str(error), None) from error
    there = tuple(dict.fromkeys(record.target for record in records))
    if target is None and len(there) > 1:
        message = f"{folder.as_posix()} has kernels for several targets"
        raise UsageProblem("T2C001", message, f"--target {' | '.join(there)}")
    chosen = tuple(r for r in records if target is None or target in (r.target, r.family))
    if not chosen:
        raise UsageProblem(
            "T2C002",
            f"{folder.as_posix()} has no kernel for {target}",
            f"known: {', '.join(there)}",
        )
    if len({record.target for record in chosen}) > 1:
        several = dict.fromkeys(record.target for record in chosen)
        help = f"--target {' | '.join(several)}"
        raise UsageProblem("T2C001", f"--target {target} means several", help)
    return chosen
