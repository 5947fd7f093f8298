"""Arguments of a call, by position or by name, each taken once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from tile2c.transpile.ir.build.context import Builder, Stop, Value
from tile2c.transpile.ir.build.literals import Host
from tile2c.transpile.ir.dtypes import BOOL, DTYPES, DType
from tile2c.transpile.ir.expr import Const, const

if TYPE_CHECKING:
    from collections.abc import Sequence


SAME_TYPE = {"float8_e4m3": "float8_e4m3fn"}


def language_name(node: cst.BaseExpression) -> str | None:
    """`exp` of `T.exp`; also `a.b` of `T.a.b`."""
    if not isinstance(node, cst.Attribute):
        return None
    if isinstance(node.value, cst.Name):
        return node.attr.value if node.value.value == "T" else None
    outer = language_name(node.value)
    return None if outer is None else f"{outer}.{node.attr.value}"


def type_of(node: cst.BaseExpression) -> DType | None:
    """The type that `T.float16` names."""
    name = language_name(node)
    return None if name is None else DTYPES.get(SAME_TYPE.get(name, name))


class Arguments:
    """The arguments of one call. Each getter takes one; `finish` refuses what is left."""

    def __init__(self, b: Builder, node: cst.Call, what: str) -> None:
        self.b = b
        self.node = node
        self.what = what
        self.positional: list[cst.BaseExpression] = []
        self.keywords: dict[str, cst.BaseExpression] = {}
        self.taken = 0
        for arg in node.args:
            if arg.keyword is not None:
                self.keywords[arg.keyword.value] = arg.value
            else:
                self.positional.append(arg.value)

    def find(self, name: str, place: int | None) -> cst.BaseExpression | None:
        """The argument, or None where the call does not give it."""
        if place is not None and place < len(self.positional):
            self.taken = max(self.taken, place + 1)
            return self.positional[place]
        return self.keywords.pop(name, None)

    def node_of(self, name: str, place: int | None) -> cst.BaseExpression:
        found = self.find(name, place)
        if found is None:
            self.b.fail("T2C242", f"{self.what} needs `{name}`", self.node)
        return found

    def value(self, name: str, place: int | None) -> Value:
        from tile2c.transpile.ir.build.expressions import expression

        return expression(self.b, self.node_of(name, place))

    def values(self, *names: str) -> list[Value]:
        """All arguments of a function that takes these, each of them given."""
        from tile2c.transpile.ir.build.expressions import expressions

        nodes = [self.node_of(name, place) for place, name in enumerate(names)]
        self.finish()
        return expressions(self.b, nodes)

    def dtype(self, name: str, place: int | None) -> DType:
        node = self.node_of(name, place)
        found = type_of(node)
        if found is None:
            self.b.fail("T2C242", f"`{name}` of {self.what} has to be a type", node)
        return found

    def host(self, name: str, place: int | None, default: Host | None = None) -> Host:
        """A number that has to be known when the kernel is built."""
        from tile2c.transpile.ir.build.expressions import expression

        node = self.find(name, place)
        if node is None:
            if default is None:
                self.b.fail("T2C242", f"{self.what} needs `{name}`", self.node)
            return default
        value = expression(self.b, node)
        if value.host is None:
            self.b.fail(
                "T2C242", f"`{name}` of {self.what} has to be known when the kernel is built", node
            )
        return value.host

    def whole(self, name: str, place: int | None, default: int | None = None) -> int:
        found = self.host(name, place, default)
        if not isinstance(found, int):
            self.b.fail("T2C242", f"`{name}` of {self.what} has to be an integer", self.node)
        return int(found)

    def constant(self, name: str, place: int | None, default: int) -> Const:
        """An integer known when the kernel is built, with its name where it has one."""
        from tile2c.transpile.ir.build.expressions import expression

        node = self.find(name, place)
        if node is None:
            return const(default)
        value = expression(self.b, node)
        if not isinstance(value.host, int):
            self.b.fail("T2C242", f"`{name}` of {self.what} has to be a known integer", node)
        if isinstance(value.expr, Const):
            return value.expr
        return const(value.host)

    def flag(self, name: str, place: int | None, default: bool) -> bool:
        return bool(self.host(name, place, default))

    def text(self, name: str, place: int | None, default: str) -> str:
        node = self.find(name, place)
        if node is None:
            return default
        if isinstance(node, cst.SimpleString):
            return str(node.evaluated_value)
        self.b.fail("T2C242", f"`{name}` of {self.what} has to be a string", node)

    def ignore(self, *names: str) -> None:
        """Drops keywords that are hints."""
        for name in names:
            self.keywords.pop(name, None)

    def finish(self) -> None:
        """Refuses arguments that nobody took."""
        if len(self.positional) > self.taken:
            extra = self.positional[self.taken]
            self.b.fail("T2C242", f"{self.what} takes {self.taken} positional arguments", extra)
        for name, node in self.keywords.items():
            self.b.fail("T2C242", f"{self.what} has no argument `{name}`", node)


def tuple_items(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Items of a tuple or list; a single expression counts as one item."""
    if isinstance(node, (cst.Tuple, cst.List)):
        return [item.value for item in node.elements]
    return [node]


def static_shape(b: Builder, nodes: Sequence[cst.BaseExpression], what: str) -> tuple[Value, ...]:
    """Extents known when the kernel is built, for memory on the chip."""
    from tile2c.transpile.ir.build.expressions import expressions

    found = expressions(b, nodes)
    for value, node in zip(found, nodes, strict=True):
        if value.host is None or value.dtype == BOOL or not value.dtype.is_integer:
            b.error(
                "T2C401",
                f"the shape of {what} has to be known when the kernel is built",
                node,
                help="fix it with -D NAME=VALUE, or use a block size instead",
            )
            raise Stop
        if value.host <= 0:
            b.fail("T2C401", f"an extent of {what} is {value.host}: it has to be positive", node)
    return tuple(found)
