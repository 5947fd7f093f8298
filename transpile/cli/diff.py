"""`tile2c diff OLD.py NEW.py`: what a change of a tile program changes in its kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile2c.transpile.cli.report import Reporter, status_of
from tile2c.transpile.cli.status import Status
from tile2c.transpile.cli.together import no_such_file
from tile2c.transpile.diagnostics import Diagnostics

if TYPE_CHECKING:
    from tile2c.transpile.cli.options import Command
    from tile2c.transpile.output.compare import Change
    from tile2c.transpile.output.generated import GeneratedKernel

EXAMPLES = """\
\b
Examples:
  tile2c diff old/gemm.py gemm.py
  tile2c diff old/gemm.py gemm.py --target cuda:sm_90a,hip:gfx942 -D block_M=64
  git show HEAD:gemm.py > /tmp/gemm.py && tile2c diff /tmp/gemm.py gemm.py

\b
Kernels are compared by name. Registers are an estimate from the plan: what a thread's arrays fill.
Exit status: 0, with or without differences; with --exit-code 1 if there are some; 1 if an input is
wrong; 2 if the command line is.
"""


def command() -> Command:
    """The command object; it only parses."""
    import click
    from tile2c.transpile.cli.options import CONTEXT, Command

    return Command(
        "diff",
        usage="OLD.py NEW.py [options]",
        help="Says what changed in the kernels of two versions of a tile program; writes nothing.",
        epilog=EXAMPLES,
        context_settings=CONTEXT,
        params=[
            click.Argument(["old"]),
            click.Argument(["new"]),
            click.Option(
                ["--target", "targets"], metavar="T[,T...]", multiple=True, help="Default cuda."
            ),
            click.Option(
                ["-D", "defines"], metavar="NAME=VALUE", multiple=True, help="As for generating."
            ),
            click.Option(["--kernel", "kernels"], metavar="NAME", multiple=True, help="Only this."),
            click.Option(
                ["--full"],
                is_flag=True,
                help="The whole diff of every text, as in pipes and files; a terminal gets its start.",
            ),
            click.Option(["--exit-code"], is_flag=True, help="Exit with 1 if something differs."),
            click.Option(
                ["--format", "format"], type=click.Choice(["text", "json"]), default="text"
            ),
        ],
    )


def diff(arguments: Sequence[str]) -> int:
    """Prints the differences and returns the exit status."""
    from tile2c.transpile.output.compare import compare
    from tile2c.transpile.output.differences import SHOWN

    with command().make_context("tile2c diff", list(arguments)) as context:
        values: dict[str, Any] = dict(context.params)
    reporter = Reporter(values["format"])
    diagnostics = Diagnostics()
    old, new = (_generated(values, values[side], diagnostics) for side in ("old", "new"))
    reporter.show_all(diagnostics.items)
    if diagnostics.failed:
        return status_of(diagnostics)
    whole = values["full"] or values["format"] == "json" or not sys.stdout.isatty()
    changes = compare(old, new, shown=None if whole else SHOWN)
    if values["format"] == "json":
        print(json.dumps([asdict(change) for change in changes], indent=2, ensure_ascii=False))
    else:
        print("\n".join(line for change in changes for line in _lines(change)))
    differs = any(change.kind != "same" for change in changes)
    return Status.INPUT if differs and values["exit_code"] else Status.DONE


def _generated(
    values: dict[str, Any], name: str, diagnostics: Diagnostics
) -> tuple[GeneratedKernel, ...]:
    from tile2c.transpile import pipeline
    from tile2c.transpile.cli.generate import names_checked, parsed_defines, target_names

    if not Path(name).is_file():
        raise no_such_file(Path(name))
    request = pipeline.Request(
        inputs=(Path(name),),
        targets=target_names(values["targets"]),
        defines=parsed_defines(values["defines"]),
        kernels=values["kernels"],
        spelled=tuple(values["defines"]),
    )
    with names_checked():
        return pipeline.generate(request, diagnostics)


def _lines(change: Change) -> Iterator[str]:
    """The first line stands alone: `gemm (cuda:sm_80): changed`."""
    yield f"{change.name} ({change.target}): {change.kind}"
    width = max((len(name) for name, _ in change.facts), default=0)
    for name, value in change.facts:
        yield f"    {name:{width}}  {value}"
    yield from (f"    {line}" if line else "" for line in change.diff)
