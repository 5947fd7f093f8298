"""The entry point of the command: chooses the verb, turns what happened into an exit status."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from tile2c.transpile import quick_nodes
from tile2c.transpile.cli.status import Status, UsageProblem, nearest

if TYPE_CHECKING:
    from tile2c.transpile.cli.report import Reporter

Verb = Callable[[list[str]], int]

VERBS = ("run", "diff", "where", "emulate", "build")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status; 0, 1, 2 and 3 are those of the contract."""
    if argv is None:  # a short process of our own, not a call from another program
        quick_nodes.choose()
        gc.set_threshold(200_000)  # looking for cycles costs more time than it frees memory
        atexit.register(gc.freeze)
        _print_anything()
    arguments = list(sys.argv[1:] if argv is None else argv)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started the command
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    try:
        status = _dispatch(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of standard output has gone, as `| head` does
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
        return Status.DONE
    except KeyboardInterrupt:
        return Status.INTERRUPTED
    except OSError as error:  # a full disk behind standard output, a path that cannot be
        return _system_refuses(error, arguments)
    except Exception as error:
        return _internal_error(error)


def _print_anything() -> None:
    """Letters that standard output cannot hold are escaped there, as on standard error."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _dispatch(arguments: list[str]) -> int:
    from click import ClickException
    from click.exceptions import Exit
    from tile2c.transpile.diagnostics import InputError

    reporter = _reporter(arguments)
    try:
        return _verb(arguments)(arguments)
    except Exit as exit:
        return exit.exit_code
    except UsageProblem as problem:
        reporter.problem(problem.code, problem.message, problem.help)
        return Status.USAGE
    except ClickException as problem:
        reporter.problem("T2C001", *_explained(problem))
        return Status.USAGE
    except InputError as error:
        reporter.show(error.diagnostic)
        return Status.INPUT


def _verb(arguments: list[str]) -> Verb:
    if arguments and arguments[0] == "run":
        from tile2c.transpile.cli.run import run

        return lambda rest: run(rest[1:])
    if arguments and arguments[0] == "diff":
        from tile2c.transpile.cli.diff import diff

        return lambda rest: diff(rest[1:])
    if arguments and arguments[0] == "where":
        from tile2c.transpile.cli.where import where

        return lambda rest: where(rest[1:])
    if arguments and arguments[0] == "emulate":
        from tile2c.transpile.cli.emulate import emulate

        return lambda rest: emulate(rest[1:])
    if arguments and arguments[0] == "build":
        from tile2c.transpile.cli.project import build

        return lambda rest: build(rest[1:])
    from tile2c.transpile.cli.generate import generate

    return generate


def _reporter(arguments: Sequence[str]) -> Reporter:
    """For problems with the command line itself, which is not understood yet."""
    from tile2c.transpile.cli.report import Reporter

    as_json = "--format=json" in arguments or any(
        pair == ("--format", "json") for pair in pairwise(arguments)
    )
    return Reporter("json" if as_json else "text")


def _explained(problem: Exception) -> tuple[str, str]:
    """Click's problem as message and help, in the style of the other messages."""
    from click import ClickException, NoSuchOption, UsageError

    assert isinstance(problem, ClickException)
    command = "tile2c"
    if isinstance(problem, UsageError) and problem.ctx is not None:
        command = problem.ctx.command_path
    if isinstance(problem, NoSuchOption):
        parameters = problem.ctx.command.params if problem.ctx is not None else []
        known = [name for parameter in parameters for name in parameter.opts if name[0] == "-"]
        near = nearest(problem.option_name, known)
        hint = f"did you mean {near}?" if near else f"`{command} -h` lists the options"
        return f"no such option: {problem.option_name}", hint
    message = problem.format_message().rstrip(".").replace("\n", " ")
    return message[:1].lower() + message[1:], f"`{command} -h` explains the options"


def _system_refuses(error: OSError, arguments: Sequence[str]) -> int:
    if os.environ.get("TILE2C_DEBUG") == "1":
        return _internal_error(error)
    with suppress(OSError, ValueError):  # what is left in the buffer has nowhere to go
        sys.stdout.close()
    sys.stdout = open(os.devnull, "w", encoding="utf-8")
    where = f"{error.filename}: " if error.filename else ""
    with suppress(OSError):
        _reporter(arguments).problem("T2C606", where + (error.strerror or str(error)), None)
    return Status.INPUT


def _internal_error(error: Exception) -> int:
    import traceback

    if os.environ.get("TILE2C_DEBUG") == "1":
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    print(f"tile2c: internal error: {text}{place}", file=sys.stderr)
    print(f"   = note: this is a bug in tile2c, not in your input; {_where()}", file=sys.stderr)
    print("   = help: TILE2C_DEBUG=1 prints where it happened", file=sys.stderr)
    return Status.BUG


def _where() -> str:
    """Where to report a bug: the project's own address, if its package tells one."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata("tile2c").get_all("Project-URL") or []
    except PackageNotFoundError:
        urls = []
    for url in urls:
        label, _, address = str(url).partition(", ")
        if label.lower() in ("issues", "bug tracker", "tracker"):
            return f"please report it with the input file and the command at {address}"
    return "please report it with the input file and the command in the project's issue tracker"
