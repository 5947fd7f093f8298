"""The builtins and library functions that build-time code may use, each bounded."""

from __future__ import annotations

import ast
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
    if name in ("print", "exit", "quit"):
        return None
    if name == "input":
        return Unknown("input() is not evaluated", ev.span(node))
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
    return run_bounded(ev, name, _PLAIN[name], args, kwargs, node)


def run_bounded(
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
    order = run_bounded(
        ev, "sorted", sorted, [list(zip(keys, range(len(keys)), strict=True))], {}, node
    )
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
    result = run_bounded(ev, name, getattr(owner, name), args, kwargs, node)
    return list(result) if name in ("items", "keys", "values") else result
