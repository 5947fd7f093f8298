"""`-D` options as a value: what is fixed, for which kernel, and what is promised about sizes."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import field

from tile2c.transpile.record import record
from tile2c.transpile.stage.device import Device
from tile2c.transpile.stage.values import MISSING, DType, Missing, Value
from tile2c.transpile.stage.vocabulary import dtype_name, nearest


class DefineError(ValueError):
    """A `-D` option that cannot be read."""


class UnknownName(ValueError):
    """A `-D` or `--kernel` name that nothing in the file has."""

    def __init__(
        self, option: str, name: str, known: Iterable[str], why: str | None = None
    ) -> None:
        near = nearest(name, known)
        listed = ", ".join(sorted(set(known)))
        hint = f"did you mean {near}?" if near else f"there is {listed}" if listed else None
        problem = why or "nothing of that name"
        super().__init__(f"{option} {name}: {problem}" + (f"; {hint}" if hint else ""))
        self.option, self.name, self.nearest, self.why = option, name, near, why


@record(frozen=False)
class NamesMet:
    """The names that the files of one run have, so that `-D` and `--kernel` can be checked."""

    kernels: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)
    sizes: set[str] = field(default_factory=set)  # those of the parameters that may be at run time
    qualified: set[str] = field(default_factory=set)  # `gemm.M`: each parameter of each kernel
    complete: bool = True  # False once a file could not be read: it may have any name

    def check(
        self, defines: Defines, only: Sequence[str], optional: frozenset[str] = frozenset()
    ) -> None:
        """Raises UnknownName for the first name that no file has, unless it is `optional`."""
        if not self.complete:
            return
        for name in only:
            if name not in self.kernels:
                raise UnknownName("--kernel", name, self.kernels)
        for name in (name for name in defines.unused() if name not in optional):
            raise self._unknown(name, defines)

    def _unknown(self, name: str, defines: Defines) -> UnknownName:
        kernel, _, key = name.rpartition(".")
        promises = {promise.name: promise.divisor for promise in defines.promises}
        if key in self.parameters and kernel and f"{kernel}.{key}" not in self.qualified:
            known = {name for name in self.qualified if name.endswith(f".{key}")}
            why = None if kernel in self.kernels else f"there is no kernel {kernel}"
            return UnknownName("-D", name, known, why)
        if key in self.parameters and key not in self.sizes and key in promises:
            why = (
                f"{key} is a compile-time parameter, and %{promises[key]}=0 is a promise about "
                "run-time sizes"
            )
            return UnknownName("-D", name, self.sizes, why)
        return UnknownName("-D", name, self.parameters)


@record
class Dynamic:
    """`NAME=dynamic`: a run-time size, whatever else would fix it."""


@record
class Promise:
    """`name % divisor == 0` holds at every launch."""

    name: str
    divisor: int
    kernel: str | None = None


@record
class Defines:
    """What the command line fixes. `used` grows as names are looked up and found."""

    values: tuple[tuple[str | None, str, Value], ...] = ()  # kernel or class, name, value
    promises: tuple[Promise, ...] = ()
    used: set[tuple[str | None, str]] = field(default_factory=set, compare=False)
    device: Device = field(default_factory=Device)  # of the target that is written for

    def find(self, name: str, kernels: Iterable[str]) -> Value | Missing:
        """What `name` is fixed to for a kernel of one of these names, which may be None."""
        kernels = tuple(kernels)
        found: Value | Missing = MISSING
        for kernel, key, value in self.values:
            if key == name and kernel is None and isinstance(found, Missing):
                found = value
        for kernel, key, value in self.values:
            if key == name and kernel in kernels:
                found = value
        for kernel, key, _ in self.values:
            if key == name and (kernel is None or kernel in kernels):
                self.used.add((kernel, key))
        return found

    def promised(self, sizes: Iterable[str], kernels: Iterable[str]) -> dict[str, int]:
        """For each of these sizes with a promise, the number that divides it."""
        sizes, kernels = tuple(sizes), tuple(kernels)
        found = [
            promise
            for promise in self.promises
            if promise.name in sizes and (promise.kernel is None or promise.kernel in kernels)
        ]
        self.used.update((promise.kernel, promise.name) for promise in found)
        divisors: dict[str, int] = {}
        for promise in found:
            known = divisors.get(promise.name, 1)
            divisors[promise.name] = math.lcm(known, promise.divisor)
        return divisors

    def unused(self) -> list[str]:
        """The names, as written, that no kernel had."""
        keys = [(kernel, key) for kernel, key, _ in self.values]
        keys += [(promise.kernel, promise.name) for promise in self.promises]
        return [
            f"{kernel}.{key}" if kernel else key
            for kernel, key in keys
            if (kernel, key) not in self.used
        ]


_NAME = r"(?:(?P<kernel>[A-Za-z_]\w*)\.)?(?P<name>[A-Za-z_]\w*)"
_PROMISE = re.compile(rf"{_NAME}\s*%\s*(?P<divisor>\d+)\s*==?\s*0+")
_VALUE = re.compile(rf"{_NAME}=(?P<value>.*)", re.DOTALL)


def parse_defines(options: Sequence[str]) -> Defines:
    """Reads `NAME=VALUE`, `KERNEL.NAME=VALUE`, `NAME=dynamic` and `M%16=0`. Raises DefineError."""
    values: list[tuple[str | None, str, Value]] = []
    promises: list[Promise] = []
    spelled: list[str] = []  # of `values`, for messages
    for option in options:
        if promise := _PROMISE.fullmatch(option.strip()):
            divisor = int(promise["divisor"])
            if not 0 < divisor < 2**31:
                raise DefineError(f"-D {option}: no size can be divided by that")
            promises.append(Promise(promise["name"], divisor, promise["kernel"]))
        elif value := _VALUE.fullmatch(option.strip()):
            key, given = (value["kernel"], value["name"]), parse_value(value["value"], option)
            for earlier, other in zip(values, spelled, strict=True):
                if earlier[:2] == key and earlier[2] != given:
                    raise DefineError(f"-D {option} contradicts -D {other}")
            values.append((*key, given))
            spelled.append(option)
        else:
            raise DefineError(f"-D {option}: write NAME=VALUE, NAME=dynamic or NAME%16=0")
    for said in promises:
        for (kernel, name, fixed), option in zip(values, spelled, strict=True):
            met = name == said.name and (None in (kernel, said.kernel) or kernel == said.kernel)
            if met and isinstance(fixed, int) and fixed % said.divisor:
                raise DefineError(f"-D {name}%{said.divisor}=0 contradicts -D {option.strip()}")
    return Defines(tuple(values), tuple(promises))


def parse_value(text: str, option: str) -> Value:
    """A Python literal, a dtype name or `dynamic`."""
    text = text.strip()
    if not text:
        raise DefineError(f"-D {option}: there is no value")
    if text == "dynamic":
        return Dynamic()
    bare = text.removeprefix("T.").removeprefix("torch.")
    if (name := dtype_name(bare)) is not None:
        return DType(name)
    if len(text) > 1000:
        raise DefineError(f"-D {option[:60]}...: the value is too long")
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    if re.fullmatch(r"[\w.+-]+", text):
        return text  # a bare word is a string
    if len(text) > 60:
        option, text = f"{option[:60]}...", f"{text[:60]}..."
    raise DefineError(f"-D {option}: {text} is no Python literal, dtype or `dynamic`")
