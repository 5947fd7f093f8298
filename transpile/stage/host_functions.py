"""The builtins and library functions that build-time code may use, each bounded."""

from __future__ import annotations

import ast
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage import host_arithmetic
from tile2c.transpile.stage.buffers import Buffer, Region
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.values import (
    BoundMethod,
    Closure,
    Decorated,
    DType,
    Foreign,
    HostClass,
    HostFunction,
    HostTensor,
    Instance,
    LanguageName,
    Unknown,
    Value,
)
from tile2c.transpile.stage.vocabulary import dtype_name

if TYPE_CHECKING:
    from tile2c.transpile.stage.invoke import Caller

Arguments = tuple[list[Value], dict[str, Value]]
_SUGGESTED = {"min": "T.min", "max": "T.max", "abs": "T.abs", "round": "T.round"}
_CASTS = {"int": "int32", "float": "float32", "bool": "bool"}


def residual_in(values: list[Value]) -> bool:
    """Whether one of them is a value of the kernel, or a run-time size."""
    return any(isinstance(v, Expr) or (isinstance(v, Buffer) and v.scope == "var") for v in values)


def call_builtin(
    ev: Caller, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """Calls builtin `name`; Unknown operands give Unknown, values of the kernel an error."""
    if name in ("print", "input", "exit", "quit"):
        return None
    if name in ("property", "staticmethod", "classmethod"):
        return Decorated(name, args[0] if args else None)
    if name in ("object", "super") or name.endswith(("Error", "Exception", "Warning")):
        return Unknown(f"{name}() is not evaluated", ev.span(node))
    if name in _TRANSPARENT:
        return _TRANSPARENT[name](ev, args, kwargs, node)
    unknown = next((v for v in args if isinstance(v, Unknown | Foreign)), None)
    if unknown is not None:
        return unknown if isinstance(unknown, Unknown) else Unknown(f"{unknown.path} is not read")
    for value in args:
        ev.known(value, node, name)
    if residual_in(args) and name in (*_SUGGESTED, *_CASTS):
        return _residual_builtin(ev, name, args, node)
    if name in _OVER_ITEMS:
        args = [list(ev.iterate(value, node)) if iterable(value) else value for value in args]
        if residual_in(args[0] if args and isinstance(args[0], list) else []) and name != "sorted":
            if name in _SUGGESTED:
                return _residual_builtin(ev, name, args[0], node)
    return _run(ev, name, _PLAIN[name], args, kwargs, node)


def _run(
    ev: Caller,
    name: str,
    function: Callable[..., Value],
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    try:
        for value in args:
            host_arithmetic.weigh(value)
        return function(*args, **kwargs)
    except host_arithmetic.TooLarge:
        raise ev.fail("T2C114", f"the arguments of {name} are too large", node) from None
    except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
        if not ev.exact:
            return Unknown(f"{name} fails: {error}", ev.span(node))
        raise ev.fail("T2C112", f"this fails at build time: {error}", node) from None


def _residual_builtin(ev: Caller, name: str, args: list[Value], node: ast.AST) -> Value:
    """`min(M, 4)` on run-time sizes is meant; on values of the kernel it is an error."""
    exprs = [ev.expression(value, None) for value in args]
    if not any(expr.device for expr in exprs) and name in ("min", "max", "int"):
        result = exprs[0]
        for expr in exprs[1:]:
            result = ex.call(name, (result, expr), ev.span(node))
        return result
    for expr in exprs:
        ev.need_decided(expr, node, f"{name}() runs when the kernel is built, and it")
    quoted = ", ".join(ex.text(expr) for expr in exprs)
    help = f"{_SUGGESTED[name]}({quoted})" if name in _SUGGESTED else ""
    if name in _CASTS:
        help = f'T.cast({quoted}, "{_CASTS[name]}")'
    raise ev.fail(
        "T2C241", f"Python's {name}() needs a number known at build time", node, help=help
    )


def iterable(value: Value) -> bool:
    return isinstance(value, list | tuple | dict | set | frozenset | range | str | Iterator)


def _isinstance(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    value, wanted = args
    if isinstance(value, Unknown):
        return value
    names = wanted if isinstance(wanted, tuple) else (wanted,)
    return any(_is_a(value, kind) for kind in names)


def _is_a(value: Value, kind: Value) -> bool:
    if isinstance(kind, HostFunction):
        types = {"int": int, "float": float, "str": str, "bool": bool, "list": list}
        types |= {"tuple": tuple, "dict": dict, "set": set}
        return isinstance(value, types.get(kind.name, ()))
    if isinstance(kind, HostClass):
        return isinstance(value, Instance) and value.cls is kind
    if isinstance(kind, LanguageName | Foreign) and kind.path.endswith("Buffer"):
        return isinstance(value, Buffer | Region)
    return False


def _getattr(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    owner, name = args[0], args[1]
    if not isinstance(name, str):
        return Unknown("the attribute's name is unknown")
    default = args[2:] or None
    return ev.attribute(owner, name, node, default)


def _hasattr(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    owner, name = args
    if isinstance(owner, Instance):
        return name in owner.attributes or (owner.cls is not None and name in owner.cls.scope.cells)
    if isinstance(owner, LanguageName):
        from tile2c.transpile.stage.vocabulary import KNOWN

        return name in KNOWN or dtype_name(name) is not None
    return Unknown(f"whether it has {name} is not evaluated", ev.span(node))


def _type(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    value = args[0]
    if isinstance(value, Instance) and value.cls is not None:
        return value.cls
    return ev.builtin(type(value).__name__) or Unknown("its type", ev.span(node))


def _callable(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    return isinstance(args[0], Closure | HostFunction | LanguageName | BoundMethod | HostClass)


def _sum(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    total = args[1] if len(args) > 1 else kwargs.get("start", 0)
    for position, value in enumerate(ev.iterate(args[0], node)):
        if position == 0 and total == 0 and isinstance(value, Expr):
            total = value
        else:
            total = ev.operate("+", total, value, node, None, None)
    return total


def _sorted(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    items = list(ev.iterate(args[0], node))
    keys = items
    if kwargs.get("key") is not None:
        keys = [ev.invoke(kwargs["key"], [item], {}, node) for item in items]
    order = _run(ev, "sorted", sorted, [list(zip(keys, range(len(keys)), strict=True))], {}, node)
    if not isinstance(order, list):
        return order
    result = [items[position] for _, position in order]
    return result[::-1] if kwargs.get("reverse") else result


def _extreme(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    return Unknown("min and max with a key are not evaluated", ev.span(node))


def _map(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    columns = [list(ev.iterate(value, node)) for value in args[1:]]
    return [ev.invoke(args[0], list(row), {}, node) for row in zip(*columns, strict=False)]


def _filter(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    kept = []
    for item in ev.iterate(args[0 + 1], node):
        test = item if args[0] is None else ev.invoke(args[0], [item], {}, node)
        if ev.truth(test, node):
            kept.append(item)
    return kept


def _len(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    value = args[0]
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Buffer | HostTensor):
        return value.shape[0]
    try:
        return len(value)
    except TypeError as error:
        raise ev.fail("T2C112", f"this fails at build time: {error}", node) from None


def _list(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    if args and isinstance(args[0], Unknown):
        return args[0]
    return list(ev.iterate(args[0], node)) if args else []


def _tuple(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    items = _list(ev, args, kwargs, node)
    return tuple(items) if isinstance(items, list) else items


def _dict(ev: Caller, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    if args and isinstance(args[0], Unknown):
        return args[0]
    result: dict[Value, Value] = {}
    if args and isinstance(args[0], dict):
        result.update(args[0])
    elif args:
        for pair in ev.iterate(args[0], node):
            key, value = pair
            result[ev.hashable(key, node)] = value
    return {**result, **kwargs}


def _any_all(ev: Caller, name: str, args: list[Value], node: ast.AST) -> Value:
    for item in ev.iterate(args[0], node):
        truth = ev.truth(item, node)
        if truth is None:
            return Unknown("an item is unknown", ev.span(node))
        if truth == (name == "any"):
            return truth
    return name == "all"


_TRANSPARENT: dict[str, Callable[..., Value]] = {
    "isinstance": _isinstance,
    "getattr": _getattr,
    "hasattr": _hasattr,
    "type": _type,
    "callable": _callable,
    "sum": _sum,
    "sorted": _sorted,
    "map": _map,
    "filter": _filter,
    "len": _len,
    "list": _list,
    "tuple": _tuple,
    "dict": _dict,
    "any": lambda ev, args, kwargs, node: _any_all(ev, "any", args, node),
    "all": lambda ev, args, kwargs, node: _any_all(ev, "all", args, node),
}


def _enumerate(items: list[Value], start: int = 0) -> list[tuple[int, Value]]:
    return list(enumerate(items, start))


def _zip(*columns: list[Value], strict: bool = False) -> list[tuple[Value, ...]]:
    return list(zip(*columns, strict=strict))


def _str(value: Value = "") -> Value:
    return str(value)


def _pow(base: Value, exponent: Value) -> Value:
    return host_arithmetic.apply("**", base, exponent)


_PLAIN: dict[str, Callable[..., Value]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": _str,
    "min": min,
    "max": max,
    "abs": abs,
    "round": round,
    "range": range,
    "zip": _zip,
    "enumerate": _enumerate,
    "reversed": lambda items: items[::-1],
    "set": set,
    "frozenset": frozenset,
    "divmod": divmod,
    "pow": _pow,
    "repr": repr,
    "slice": slice,
    "chr": chr,
    "ord": ord,
    "hex": hex,
    "bin": bin,
    "complex": complex,
}
_OVER_ITEMS = frozenset(("min", "max", "zip", "enumerate", "reversed", "set", "frozenset"))
BUILTINS = frozenset(
    (
        *(*_PLAIN, *_TRANSPARENT, "print", "input", "exit", "quit", "object", "super"),
        *("property", "staticmethod", "classmethod", "Exception", "ValueError", "TypeError"),
        *("RuntimeError", "NotImplementedError", "AssertionError", "ImportError", "KeyError"),
    )
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
_LARGEST = {
    "float16": (65504.0, 2.0**-10, 2.0**-14),
    "bfloat16": (3.3895313892515355e38, 2.0**-7, 2.0**-126),
    "float32": (3.4028234663852886e38, 2.0**-23, 2.0**-126),
    "float64": (1.7976931348623157e308, 2.0**-52, 2.0**-1022),
    "float8_e4m3fn": (448.0, 0.125, 2.0**-6),
    "float8_e5m2": (57344.0, 0.25, 2.0**-14),
}


def call_library(
    ev: Caller, path: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """Calls `path` of a package that is not read: known functions work, the rest is Unknown."""
    head, _, last = path.rpartition(".")
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
        return _run(ev, path, LIBRARY[path], args, kwargs, node)
    if last == "DataType" and args and (found := ev.as_dtype(args[0])) is not None:
        return DType(found)
    if path.startswith("tvm.") and last == "const" and len(args) == 2:
        return ev.call_language_values("cast", args, {}, node)
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


METHODS: dict[type, frozenset[str]] = {
    str: frozenset(
        """startswith endswith lower upper strip lstrip rstrip split replace join removeprefix
        removesuffix isdigit find count title capitalize format""".split()
    ),
    list: frozenset("append extend insert pop index count copy reverse remove clear".split()),
    dict: frozenset("get items keys values pop update copy setdefault".split()),
    set: frozenset("add discard union update copy remove".split()),
    tuple: frozenset("index count".split()),
    int: frozenset(("bit_length",)),
    float: frozenset(("is_integer",)),
}


def call_method(
    ev: Caller,
    owner: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    """A method of one of Python's own objects."""
    if isinstance(owner, str) and name == "format":
        return Unknown("str.format is not evaluated; an f-string is", ev.span(node))
    if isinstance(owner, str) and any(isinstance(value, Unknown) for value in args):
        return Unknown("an argument is unknown", ev.span(node))
    if isinstance(owner, str) and name in ("join", "replace"):
        args = [list(ev.iterate(v, node)) if not isinstance(v, str) else v for v in args]
        if len(owner) * max((len(value) for value in args), default=0) > host_arithmetic.MOST_ITEMS:
            raise ev.fail("T2C114", f"the result of {name} is too large", node)
    if (
        isinstance(owner, list)
        and name in ("append", "insert")
        and len(owner) > host_arithmetic.MOST_ITEMS
    ):
        raise ev.fail("T2C114", "this list grows too large", node)
    if isinstance(owner, list) and name == "extend":
        args = [list(ev.iterate(args[0], node))]
        if len(owner) + len(args[0]) > host_arithmetic.MOST_ITEMS:
            raise ev.fail("T2C114", "this list grows too large", node)
    if isinstance(owner, dict) and name == "update":
        args = [v for v in args if isinstance(v, dict)]
    result = _run(ev, name, getattr(owner, name), args, kwargs, node)
    return list(result) if name in ("items", "keys", "values") else result
