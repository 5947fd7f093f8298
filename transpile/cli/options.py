"""The options of the main spelling, `tile2c INPUT.py -o OUT`, and their help."""

from __future__ import annotations

from typing import Any

import click

EXAMPLES = """\
\b
Examples:
  tile2c gemm.py -o out/                         CUDA, for Ampere and newer
  tile2c gemm.py -o out/ --target cuda:sm_90a,hip:gfx942
  tile2c gemm.py -o out/ -D block_M=64 -D N=4096 -D K=dynamic
  tile2c gemm.py --list                          what is in the file
  tile2c gemm.py -o out/ --check                 is out/ up to date?
  tile2c gemm.py -o out/ --merge                 keep edits made by hand
  tile2c run out/ --backend emulate --against interpreter --check races,memory
  tile2c diff old.py new.py                      what changed in the kernels?
  tile2c where out/gemm.cu:130                   which statement is this line?

\b
Other verbs: run, build, diff, where, emulate (`tile2c run -h`).

\b
Exit status: 0 done; 1 the input is wrong, or --check found a difference, or an
edited file is in the way; 2 the command line is wrong; 3 a bug in tile2c.
"""

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Command(click.Command):
    """A command whose help shows what it takes first."""

    def __init__(self, *arguments: Any, usage: str, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._usage = usage

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, self._usage)


def command() -> Command:
    """The command object; it only parses, `generate` acts."""
    return Command(
        "tile2c",
        usage="INPUT.py [INPUT.py ...] -o OUT [options]",
        help="Turns TileLang tile programs into standalone, readable kernels.\n\n"
        "The input is read, never imported or run; nothing else has to be installed.",
        epilog=EXAMPLES,
        context_settings=CONTEXT,
        params=[*_what(), *_how(), *_about()],
    )


def _what() -> list[click.Parameter]:
    return [
        click.Argument(["inputs"], nargs=-1),
        click.Option(
            ["-o", "out"], metavar="OUT", help="Output folder, created if missing.", default=None
        ),
        click.Option(
            ["--target", "targets"],
            metavar="T[,T...]",
            multiple=True,
            help="FAMILY[:ARCH], default cuda (= cuda:sm_80); several get a sub-folder each.",
        ),
        click.Option(
            ["-D", "defines"],
            metavar="NAME=VALUE",
            multiple=True,
            help="Fixes a parameter or size; KERNEL.NAME=VALUE for one kernel; VALUE `dynamic` "
            "makes a size a run-time argument; `M%16=0` promises divisibility.",
        ),
        click.Option(
            ["--kernel", "kernels"],
            metavar="NAME",
            multiple=True,
            help="Only this kernel; may be repeated.",
        ),
        click.Option(
            ["--emit"],
            type=click.Choice(["normal", "ir", "plan"]),
            default=None,
            help="Instead of kernels: writes the normalized program (OUT/KERNEL.tile.py), or "
            "prints a later form.",
        ),
        click.Option(
            ["--line-info"], is_flag=True, help="Adds #line directives that name the source."
        ),
        click.Option(
            ["--launcher/--no-launcher", "launcher"],
            default=None,
            help="Also writes KERNEL.h and KERNEL_launch.cpp: C++ that checks and launches. A folder "
            "that has them keeps them up to date.",
        ),
        click.Option(
            ["--license-header", "license_header"],
            metavar="FILE",
            help="Puts this text as a comment on top of every file; the input's own licence "
            "comment is carried over anyway.",
        ),
        click.Option(
            ["--compile", "compile_modules"],
            is_flag=True,
            help="Also runs the compile command of each file's header; the module lies beside the "
            "file as KERNEL.ARCH.cubin (or the vendor's suffix), whatever name the header gives -o.",
        ),
    ]


def _how() -> list[click.Parameter]:
    return [
        click.Option(
            ["--check"],
            is_flag=True,
            help="Writes nothing; fails if a file in OUT is missing, stale or holds conflict"
            " marks.",
        ),
        click.Option(["--pristine"], is_flag=True, help="With --check: edited files fail as well."),
        click.Option(
            ["--merge"], is_flag=True, help="Merges new text into files that were edited by hand."
        ),
        click.Option(
            ["--force"],
            is_flag=True,
            help="Overwrites edited files after saving FILE.orig, "
            "and kernels written with other -D values.",
        ),
        click.Option(
            ["--format", "format"],
            type=click.Choice(["text", "json"]),
            default="text",
            help="How diagnostics are printed.",
            show_default=True,
        ),
    ]


def _about() -> list[click.Parameter]:
    return [
        click.Option(
            ["--list", "list_kernels"],
            is_flag=True,
            help="Lists kernels, their parameters, defaults and sizes; writes nothing.",
        ),
        click.Option(
            ["--targets", "list_targets"],
            is_flag=True,
            help="Lists the targets, what each supports, and what of it has run on silicon.",
        ),
        click.Option(
            ["--cmake-dir"],
            is_flag=True,
            help="Prints where the CMake package is, for -Dtile2c_DIR=.",
        ),
        click.Option(["--version"], is_flag=True, help="Prints the version."),
    ]
