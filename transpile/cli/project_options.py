"""The options of `tile2c build` and their help."""

from __future__ import annotations

import click
from tile2c.transpile.cli.options import CONTEXT, Command

EXAMPLES = """\
\b
tile2c.toml (in pyproject.toml the same under [tool.tile2c]):
  out = "kernels"                    # folder of the generated files
  targets = ["cuda:sm_80"]
  launcher = true
  license-header = "HEADER.txt"
  formatter = "clang-format --assume-filename={file}"
  promises = ["K % 16 == 0"]
  [[kernels]]
  source = "src/gemm.py"
  specialisations = [{ block_M = 64 }, { block_M = 128 }]

\b
Examples:
  tile2c build                       generate what the project file says
  tile2c build --check               is it up to date? (CI)
  tile2c build --merge               keep edits made by hand
  tile2c build --list-outputs        the files, one a line; writes nothing

\b
Exit status: 0 done; 1 the project or an input is wrong, or --check found a difference, or an edited
file is in the way; 2 the command line is wrong.
"""


def command() -> Command:
    """The command object; it only parses, `build` acts."""
    return Command(
        "build",
        usage="[options]",
        help="Generates every kernel of a project, as its tile2c.toml or pyproject.toml says.",
        epilog=EXAMPLES,
        context_settings=CONTEXT,
        params=[
            click.Option(
                ["--project"], metavar="FILE", help="The project file; default: found upward."
            ),
            click.Option(
                ["--into"], metavar="FOLDER", help="Where output folders are, not beside the file."
            ),
            click.Option(["--check"], is_flag=True, help="Writes nothing; fails on a difference."),
            click.Option(["--pristine"], is_flag=True, help="With --check: edited files fail too."),
            click.Option(["--merge"], is_flag=True, help="Merges new text into edited files."),
            click.Option(["--force"], is_flag=True, help="Saves edited files and overwrites them."),
            click.Option(
                ["--compile", "compile_modules"], is_flag=True, help="Also compiles every kernel."
            ),
            click.Option(
                ["--list-outputs"], is_flag=True, help="Prints the files that a build writes."
            ),
            click.Option(
                ["--depfile"], metavar="FILE", help="Writes what the outputs depend on, for make."
            ),
            click.Option(
                ["--format", "format"],
                type=click.Choice(["text", "json"]),
                default="text",
                help="How diagnostics are printed.",
                show_default=True,
            ),
        ],
    )
