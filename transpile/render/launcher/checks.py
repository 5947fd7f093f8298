"""What a launcher checks before it launches: one status code, condition and sentence for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tile2c.runtime.expressions import names_of
from tile2c.runtime.records import Argument, KernelRecord
from tile2c.transpile.record import record
from tile2c.transpile.render.launcher.expressions import CExpressions

_MULTIPLE = re.compile(r"(\w+) % (\d+) == 0")
_WORD = re.compile(r"\W+")

_COMPARISONS = {
    "<=": "at_most",
    ">=": "at_least",
    "==": "is",
    "!=": "is_not",
    "<": "below",
    ">": "above",
    "%": "modulo",
}
_COMPARED = re.compile("|".join(_COMPARISONS))

# Rounding a size up to whole tiles must not leave an int.
LARGEST_SIZE = 2**31 - 1 - 2**16
LARGEST_WORDS = f"{2**31 - 1} - {2**16}"  # as the text has it


@record
class Check:
    """`condition` is that of the failure, in C++; without one, the code is returned elsewhere."""

    code: str  # without the kernel's name: A_misaligned
    condition: str
    message: str


def argument_checks(
    record: KernelRecord, c: CExpressions, wide: frozenset[str]
) -> tuple[Check, ...]:
    """Sizes, addresses and promises, in the order in which a caller meets them.

    wide  sizes that the kernels take with 64 bits
    """
    return (
        *_sizes(record, c.names, wide),
        *_nulls(record, c),
        *(_promise(condition, c) for condition in record.requires),
    )


def _sizes(record: KernelRecord, names: Mapping[str, str], wide: frozenset[str]) -> Iterator[Check]:
    for size in record.sizes:
        name = names[size]
        if size in wide:
            yield Check(_word(name, "out_of_range"), f"{name} < 0", f"{size} is negative")
        else:
            condition = f"{name} < 0 || {name} > largest_size"
            yield Check(
                _word(name, "out_of_range"), condition, f"{size} is not within 0 to {LARGEST_SIZE}"
            )


def _nulls(record: KernelRecord, c: CExpressions) -> Iterator[Check]:
    for argument in record.arguments:
        if argument.kind == "tensor" and not _empty(argument):
            name = c.tensors[argument.name]
            parts = [f"{c(extent, within=12)} > 0" for extent in _symbolic(argument)]
            yield Check(
                _word(name, "null"), " && ".join([f"!{name}", *parts]), f"{argument.name} is null"
            )


def _empty(argument: Argument) -> bool:
    return 0 in argument.shape


def _symbolic(argument: Argument) -> Sequence[str]:
    extents = [extent for extent in argument.shape if isinstance(extent, str)]
    return [extent for extent in dict.fromkeys(extents) if names_of(extent)]


def _promise(condition: str, c: CExpressions) -> Check:
    multiple = _MULTIPLE.fullmatch(condition.strip())
    failure = f"!({c(condition)})"
    if multiple is None:
        text = _COMPARED.sub(lambda match: _COMPARISONS[match[0]], condition)
        words = _WORD.sub("_", text).strip("_")
        return Check(f"needs_{words}", failure, f"the kernel needs {condition}")
    name, divisor = multiple[1], multiple[2]
    failure = c(condition.replace("==", "!="))
    if name in c.tensors:
        return Check(
            _word(c.tensors[name], "misaligned"),
            failure,
            f"{name} does not start at a multiple of {divisor} bytes",
        )
    return Check(
        _word(c.names.get(name, name), f"not_multiple_of_{divisor}"),
        failure,
        f"{name} is not a multiple of {divisor}",
    )


def _word(name: str, what: str) -> str:
    """A code's name; two underscores in a row are the compiler's."""
    return f"{name.strip('_')}_{what}"
