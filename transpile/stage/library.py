"""Functions of known modules, each bounded: math, itertools, functools, argparse, tensors."""

from __future__ import annotations

import ast
import functools
import itertools
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tile2c.transpile.stage import host_arithmetic
from tile2c.transpile.stage.values import (
    Closure,
    DType,
    Foreign,
    HostFunction,
    HostTensor,
    Instance,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from tile2c.transpile.stage.invoke import Caller

from tile2c.transpile.stage.host_functions import residual_in, run_bounded
from tile2c.transpile.stage.vocabulary import (
    CONVERSIONS,
    MATH,
    OPERATORS,
    RENAMED,
    UNARY_OPERATORS,
)


def _product(*columns: list[Value], repeat: int = 1) -> list[Value]:
    total = math.prod(max(len(column), 1) for column in columns) ** max(min(repeat, 32), 1)
    if total > host_arithmetic.MOST_ITEMS:
        raise host_arithmetic.TooLarge
    return list(itertools.product(*columns, repeat=repeat))


def _next_power_of_2(value: int) -> int:
    return 1 if value <= 1 else 1 << (value - 1).bit_length()


_MATH = """ceil floor sqrt log log2 log10 log1p exp pow gcd prod fabs trunc sin cos tan tanh atan
    isinf isnan isfinite copysign fmod lcm""".split()
LIBRARY: dict[str, Callable[..., Value]] = {
    **{f"math.{name}": getattr(math, name) for name in _MATH},
    "itertools.product": _product,
    "itertools.chain": lambda *columns: [item for column in columns for item in column],
    "operator.mul": lambda a, b: host_arithmetic.apply("*", a, b),
    "operator.add": lambda a, b: host_arithmetic.apply("+", a, b),
}
LIBRARY_VALUES: dict[str, Value] = {
    "math.pi": math.pi,
    "math.e": math.e,
    "math.inf": math.inf,
    "math.nan": math.nan,
    "math.tau": math.tau,
}
# Functions of values that programs call by their names in TVM.
_OF_TVM = MATH | RENAMED.keys() | OPERATORS.keys() | UNARY_OPERATORS.keys() | CONVERSIONS
_LARGEST = {
    "float16": (65504.0, 2.0**-10, 2.0**-14),
    "bfloat16": (3.3895313892515355e38, 2.0**-7, 2.0**-126),
    "float32": (3.4028234663852886e38, 2.0**-23, 2.0**-126),
    "float64": (1.7976931348623157e308, 2.0**-52, 2.0**-1022),
    "float8_e4m3fn": (448.0, 0.125, 2.0**-6),
    "float8_e5m2": (57344.0, 0.25, 2.0**-14),
}


def sparse_factor(name: str, elements: str | None, metadata: str | None = None) -> int | None:
    """Numbers of the 2:4 format's metadata: four bits tell of four elements, or of two of 32 bits.

    name  get_e_factor: the elements that one number of metadata tells of; get_e_replicate_factor: the
          threads that share one
    """
    if elements is None:
        return None
    bits = bits_of(elements)
    if name == "get_e_replicate_factor":
        return 1 if bits <= 8 else 2
    return None if metadata is None else bits_of(metadata) // 4 * (2 if bits == 32 else 4)


def bits_of(dtype: str) -> int:
    """The width of an element type."""
    digits = re.search(r"\d+", dtype)
    return int(digits[0]) if digits else 8


def call_library(
    ev: Caller, path: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """Calls `path` of a package that is not read: known functions work, the rest is Unknown."""
    head, _, last = path.rpartition(".")
    if (answer := ev.device.answer(path, ev.span(node))) is not None:
        return answer
    if path in LIBRARY:
        for value in args:
            ev.known(value, node, path) if not isinstance(value, Unknown) else None
            ev.need_decided(value, node, f"{path}() runs when the kernel is built, and it")
        if residual_in(args):
            raise ev.fail(
                "T2C241",
                f"{path}() needs a number known at build time",
                node,
                help=f"T.{last}(x) computes it in the kernel",
            )
        if any(isinstance(value, Unknown | Foreign) for value in args):
            return Unknown(f"an argument of {path} is unknown", ev.span(node))
        if head == "itertools":
            args = [list(ev.iterate(value, node)) for value in args]
        return run_bounded(ev, path, LIBRARY[path], args, kwargs, node)
    if last == "DataType" and args and (found := ev.as_dtype(args[0])) is not None:
        return DType(found)
    if path.startswith("tvm.") and last == "const" and len(args) == 2:
        return ev.call_language_values("cast", args, {}, node)
    if path.startswith("tvm.") and last in _OF_TVM:
        return ev.call_language_values(last, args, kwargs, node)
    if last in ("finfo", "iinfo") and args:
        return _number_info(ev, args[0], node)
    if path in ("functools.lru_cache", "functools.cache", "functools.wraps"):
        return args[0] if args and isinstance(args[0], Closure) else identity(path)
    if path == "functools.partial":
        return HostFunction("partial", _partial(args, kwargs))
    if path == "functools.reduce":
        return _reduce(ev, args, node)
    if path in ("os.environ.get", "os.getenv"):
        return args[1] if len(args) > 1 else None
    if path == "argparse.ArgumentParser":
        return _argument_parser()
    if last in ("randn", "rand", "zeros", "ones", "empty", "full", "randint", "normal", "uniform"):
        return _tensor(last, args, kwargs)
    if last in ("empty_like", "zeros_like", "ones_like", "randn_like", "full_like") and args:
        return args[0]
    return Unknown(f"{path}() is not evaluated", ev.span(node))


def identity(name: str) -> HostFunction:
    return HostFunction(name, lambda ev, args, kwargs, node: args[0] if args else None)


def _argument_parser() -> Instance:
    """argparse's parser: the arguments have their defaults."""
    found: dict[str, Value] = {}
    names = ("parse_args", "parse_known_args", "add_argument", "add_argument_group")
    parser = Instance(None, {})

    def add(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        spelled = [value for value in args if isinstance(value, str)]
        long = next((value for value in spelled if value.startswith("--")), None)
        name = kwargs.get("dest") or (long or (spelled or [""])[0]).lstrip("-").replace("-", "_")
        flag = {"store_true": False, "store_false": True}.get(str(kwargs.get("action")))
        required = long is None or kwargs.get("required") is True
        unknown = Unknown(f"the command's argument {name} has no default", ev.span(node))
        found[str(name)] = kwargs.get("default", unknown if required and flag is None else flag)
        return None

    def parse(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return Instance(None, dict(found))

    def both(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return (Instance(None, dict(found)), [])

    def group(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return parser

    for name, run in zip(names, (parse, both, add, group), strict=True):
        parser.attributes[name] = HostFunction(name, run)
    return parser


def _partial(fixed: list[Value], named: dict[str, Value]) -> Callable[..., Value]:
    def run(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
        return ev.invoke(fixed[0], [*fixed[1:], *args], {**named, **kwargs}, node)

    return run


def _reduce(ev: Caller, args: list[Value], node: ast.AST) -> Value:
    items = list(ev.iterate(args[1], node))
    items = [*args[2:3], *items]
    if not items:
        return Unknown("reduce of nothing", ev.span(node))
    return functools.reduce(lambda a, b: ev.invoke(args[0], [a, b], {}, node), items)


def _number_info(ev: Caller, value: Value, node: ast.AST) -> Value:
    name = ev.as_dtype(value)
    if name in _LARGEST:
        largest, eps, tiny = _LARGEST[name]
        return Instance(None, {"max": largest, "min": -largest, "eps": eps, "tiny": tiny})
    if name is not None and "int" in name and "x" not in name:
        bits = int(name.removeprefix("u").removeprefix("int"))
        low = 0 if name.startswith("u") else -(1 << (bits - 1))
        return Instance(None, {"min": low, "max": low + (1 << bits) - 1, "bits": bits})
    return Unknown("the limits of this type are unknown", ev.span(node))


def _tensor(function: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The shape of a framework's new tensor, in its many spellings."""
    if function in ("normal", "uniform"):
        args = args[2:]
    if function == "randint":
        args = [value for value in args if isinstance(value, tuple | list)]
    shape = kwargs.get("size", kwargs.get("shape", args))
    if isinstance(shape, list) and len(shape) >= 1 and isinstance(shape[0], tuple | list):
        shape = shape[0]
    if not isinstance(shape, tuple | list):
        shape = (shape,)
    return HostTensor(tuple(shape), kwargs.get("dtype"))
