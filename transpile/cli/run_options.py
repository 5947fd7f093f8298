"""The options of `tile2c run` and their help."""

from __future__ import annotations

import math

import click
from tile2c.transpile.cli.options import CONTEXT, Command

EXAMPLES = """\
\b
Examples:
  tile2c run out/                                on the device, or in the emulator
  tile2c run out/ --kernel gemm --sizes M=512,N=512,K=512 --time
  tile2c run out/ --backend emulate --check races,memory --against interpreter
  tile2c run out/ --against references.py:gemm --inputs inputs.npz

\b
--against FILE.py:FUNCTION: the function takes the inputs in the author's order as NumPy arrays
and returns the outputs. --inputs FILE.py:FUNCTION: it may take sizes, seed, rng and sizes by name,
and returns the inputs, in order or as a dict. Both files are executed; the tile program never is.

\b
Exit status: 0 done and equal; 1 past the tolerance, or the kernel did something it must not do;
2 the command line is wrong.
"""


def _tolerance(
    context: click.Context, option: click.Parameter, value: float | None
) -> float | None:
    """A finite number from 0 on: against `nan` or `inf` everything would be equal."""
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise click.BadParameter(f"{value} is no finite number from 0 on", context, option)
    return value


def command() -> Command:
    """The command object; it only parses, `run` acts."""
    return Command(
        "run",
        usage="OUT [options]",
        help="Runs one kernel of OUT, as it stands there, on random or given inputs.",
        epilog=EXAMPLES,
        context_settings=CONTEXT,
        params=[
            click.Argument(["out"]),
            click.Option(["--kernel"], metavar="NAME", help="Which one, if OUT holds several."),
            click.Option(["--target"], metavar="T", help="Which one, if it is there for several."),
            click.Option(
                ["--backend"],
                metavar="B",
                help="emulate, or the target's family (cuda, hip …) for a device; default "
                "TILE2C_BACKEND, else the device that is there, else the emulator.",
            ),
            click.Option(
                ["--sizes"],
                metavar="M=512,N=…",
                help="Run-time sizes; default small with tails, and again with uneven ones where "
                "other entries of the file take those.",
            ),
            click.Option(
                ["--seed"],
                type=click.IntRange(0),
                default=0,
                show_default=True,
                help="Of the inputs.",
            ),
            click.Option(
                ["--inputs"], metavar="FILE", help="FILE.npz or FILE.py:FUNCTION for the inputs."
            ),
            click.Option(
                ["--against"],
                metavar="WHAT",
                help="`interpreter` (the meaning of the tile program) or FILE.py:FUNCTION.",
            ),
            click.Option(
                ["--source"], metavar="INPUT.py", help="The tile program, if it has moved."
            ),
            click.Option(
                ["--check"], metavar="races,memory", help="Checks of the emulator while it runs."
            ),
            click.Option(
                ["--rtol"], type=float, callback=_tolerance, help="Default by element type."
            ),
            click.Option(
                ["--atol"], type=float, callback=_tolerance, help="Default by element type."
            ),
            click.Option(["--time"], is_flag=True, help="Also prints how long it takes."),
        ],
    )
