"""A call of a language name, with its arguments evaluated."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tile2c.transpile.record import record
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.invoke import Argument
from tile2c.transpile.stage.values import Value
from tile2c.transpile.stage.vocabulary import nearest

if TYPE_CHECKING:
    from tile2c.transpile.stage.language import Language


@record(frozen=False)
class Call:
    """`T.path(*args, **keywords)`; handlers take what they know, `finish` refuses the rest."""

    ev: Language
    path: str
    node: ast.AST
    args: list[Argument]
    keywords: dict[str, Argument]

    def take(self, position: int, name: str) -> Argument | None:
        """The argument at `position`, or by keyword."""
        if position < len(self.args):
            return self.args[position]
        return self.keywords.get(name)

    def need(self, position: int, name: str) -> Argument:
        """As `take`; an error where it is not given."""
        argument = self.take(position, name)
        if argument is None:
            raise self.ev.fail("T2C242", f"T.{self.path} is called without {name}", self.node)
        return argument

    def value(self, position: int, name: str, default: Value = None) -> Value:
        argument = self.take(position, name)
        return default if argument is None else argument.value

    def expr(self, argument: Argument) -> Expr:
        return self.ev.expression(argument.value, argument.node)

    def exprs(self) -> tuple[Expr, ...]:
        return tuple(self.expr(argument) for argument in self.args)

    def keyword_exprs(self, *dropped: str) -> tuple[tuple[str, Expr], ...]:
        """The keywords spelled out, those that are None left out."""
        return tuple(
            (key, self.expr(argument))
            for key, argument in self.keywords.items()
            if key not in dropped and argument.value is not None
        )

    def flag(self, position: int, name: str, default: bool = False) -> bool:
        """A build-time bool."""
        argument = self.take(position, name)
        if argument is None or argument.value is None:
            return default
        return bool(self.ev.truth(argument.value, argument.node or self.node, name))

    def known_keywords(self, *names: str) -> None:
        """Refuses keywords that the call does not have."""
        for key, argument in self.keywords.items():
            if key not in names:
                near = next((name for name in names if key in name), None) or nearest(key, names)
                raise self.ev.fail(
                    "T2C242",
                    f"T.{self.path} has no argument {key}",
                    argument.node or self.node,
                    help=f"did you mean {near}?" if near else None,
                )
