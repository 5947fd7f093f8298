"""What a file's roots make: each with every set of arguments, for each set of `-D` values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tile2c.transpile.diagnostics import Diagnostics, InputError
from tile2c.transpile.read import Source
from tile2c.transpile.record import record
from tile2c.transpile.stage.defines import Defines
from tile2c.transpile.stage.values import MISSING, Missing, NotReady, Poisoned, Value

if TYPE_CHECKING:
    from tile2c.transpile.stage.specialise import Made, Root
    from tile2c.transpile.stage.survey import Found

_STACK = 12_000  # frames


@record(frozen=False)
class Result:
    """Of one root for one set of arguments: its kernels, or why there are none."""

    root: Root
    made: list[Made]
    not_ready: NotReady | None
    diagnostics: Diagnostics
    variant: int = 0
    blamed: tuple[str, ...] = ()  # `-D` names whose values bring the errors


def make_all(source: Source, variants: Sequence[Defines], diagnostics: Diagnostics) -> list[Result]:
    """Every root with every set of arguments that the file gives it, for each set of `-D` values."""
    from tile2c.transpile.stage.specialise import distinct, find_roots
    from tile2c.transpile.stage.survey import survey

    roots = find_roots(source, diagnostics, variants[0].device)
    calls = survey(source, variants[0].device) if roots else []
    results: list[Result] = []
    for root in roots:
        found = [_for_root(call, root) for call in calls if call.node is root.node]
        seen: set[str] = set()
        for number, defines in enumerate(variants):
            for arguments in distinct(iter(found)):
                result = _make_or_blame(source, root, arguments, calls, defines)
                result.variant = number
                key = _identity(result)
                if key is None or key not in seen:
                    results.append(result)
                if key is not None:
                    seen.add(key)
    return results


def _for_root(call: Found, root: Root) -> dict[str, Value]:
    from tile2c.transpile.stage.class_kernels import known_arguments

    arguments = known_arguments(call.arguments) if "." in root.name else call.arguments
    return {name: value for name, value in arguments.items() if name in root.parameters}


def _make_or_blame(
    source: Source, root: Root, arguments: dict[str, Value], calls: list[Found], defines: Defines
) -> Result:
    """As `_make`; where a `-D` value brings the errors, with one message for them."""
    result = _make(source, root, arguments, calls, defines)
    if not result.diagnostics.failed or not defines.values:
        return result
    from tile2c.transpile.stage.wrong_defines import one_message, to_blame

    def passes(others: Defines) -> bool:
        made = _make(source, root, arguments, calls, others)
        return made.not_ready is None and not made.diagnostics.failed

    def given(name: str) -> Value | Missing:
        return defines.find(name, root.kernels)

    def own(name: str) -> Value | Missing:
        return arguments.get(name, root.defaults.get(name, MISSING))

    result.blamed = to_blame(defines, root.kernels, passes)
    if result.blamed:
        result.diagnostics = one_message(result.diagnostics, result.blamed, given, own)
        result.made = []  # later stages would tell of the same
    return result


def _make(
    source: Source, root: Root, arguments: dict[str, Value], calls: list[Found], defines: Defines
) -> Result:
    from tile2c.transpile.stage.specialise import make

    own = Diagnostics()
    try:
        return Result(root, make(source, root, arguments, calls, defines, own), None, own)
    except NotReady as problem:
        return Result(root, [], problem, own)
    except InputError as problem:
        own.add(problem.diagnostic)
    except Poisoned:
        pass
    return Result(root, [], None, own)


def _identity(result: Result) -> str | None:
    """Equal for equal specialisations, which merge; None for what failed."""
    if result.not_ready is not None:
        return f"not ready {result.not_ready.name} {result.not_ready.why}"
    if not result.made:
        return None
    return repr([(made.function, sorted(made.parameters.items(), key=str),
                  sorted(made.ev.declared_sizes)) for made in result.made])  # fmt: skip


@contextmanager
def deep_stack() -> Iterator[None]:
    """Room for the nesting that the gate and the evaluator allow."""
    import sys

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _STACK))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
