"""The residual program while it is traced: statements, their comments, the names they bind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import libcst as cst
from tile2c.transpile.stage.concrete import ExpressionWriter, tuple_node
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.origins import Origin

Statement: TypeAlias = cst.SimpleStatementLine | cst.BaseCompoundStatement
MOST_STATEMENTS = 5_000


class Residual:
    """Collects statements into nested blocks."""

    def __init__(self) -> None:
        self.origins: dict[cst.CSTNode, Origin] = {}
        self.write = ExpressionWriter(self.origins)
        self.blocks: list[list[Statement]] = [[]]
        self.footers: list[list[str]] = [[]]
        self.comments: list[str] = []  # waiting for the next statement
        self.trailing: str | None = None  # waiting for the next simple statement
        self.count = 0

    # -- simple statements -----------------------------------------------------------------------

    def expression(self, expr: Expr, origin: Origin) -> None:
        """`expr` as a statement."""
        self._simple(cst.Expr(self.write.node(expr, origin)), origin)

    def assign(self, target: Expr, value: Expr, origin: Origin) -> None:
        """`target = value`."""
        left = self.write.node(target, origin)
        assert isinstance(left, cst.BaseAssignTargetExpression)
        node = cst.Assign([cst.AssignTarget(left)], self.write.node(value, origin))
        self._simple(node, origin)

    def keyword(self, word: str, origin: Origin) -> None:
        """`break`, `continue` or `pass`."""
        nodes = {"break": cst.Break(), "continue": cst.Continue(), "pass": cst.Pass()}
        self._simple(nodes[word], origin)

    def check(self, test: Expr, message: str | None, origin: Origin) -> None:
        """`assert test, message`."""
        said = cst.SimpleString(f'"{message}"') if message and '"' not in message else None
        self._simple(cst.Assert(self.write.node(test, origin), said), origin)

    def _simple(self, node: cst.BaseSmallStatement, origin: Origin) -> None:
        behind, self.trailing = self.trailing, None
        line = cst.SimpleStatementLine(
            [node], leading_lines=self.take_comments(), trailing_whitespace=trailing(behind)
        )
        self.origins[node] = origin
        self._add(line, origin)

    # -- compound statements ---------------------------------------------------------------------

    @contextmanager
    def block(self) -> Iterator[list[Statement]]:
        """What is written inside goes into a new list."""
        body: list[Statement] = []
        self.blocks.append(body)
        self.footers.append([])
        try:
            yield body
        finally:
            self.blocks.pop()
            self.footers.pop()

    def loop(
        self, names: Sequence[str], iterator: Expr, body: cst.BaseSuite, lead: Lead, origin: Origin
    ) -> None:
        target = target_node(names, brackets=False)
        node = cst.For(target, self.write.node(iterator, origin), body, leading_lines=lead)
        self._add(node, origin)

    def while_loop(self, test: Expr, body: cst.BaseSuite, lead: Lead, origin: Origin) -> None:
        self._add(cst.While(self.write.node(test, origin), body, leading_lines=lead), origin)

    def branch(
        self,
        test: Expr,
        body: cst.BaseSuite,
        orelse: cst.If | cst.Else | None,
        lead: Lead,
        origin: Origin,
    ) -> None:
        node = cst.If(self.write.node(test, origin), body, orelse, leading_lines=lead)
        self._add(node, origin)

    def context(
        self, item: Expr, names: Sequence[str], body: cst.BaseSuite, lead: Lead, origin: Origin
    ) -> None:
        """`with item as names:`"""
        name = cst.AsName(target_node(names, brackets=True)) if names else None
        items = [cst.WithItem(self.write.node(item, origin), name)]
        self._add(cst.With(items, body, leading_lines=lead), origin)

    def suite(
        self, body: list[Statement], header: str | None, origin: Origin, footer: Sequence[str] = ()
    ) -> cst.IndentedBlock:
        """A block's statements as a suite; `pass` where there is none."""
        if not body:
            line = cst.SimpleStatementLine([cst.Pass()])
            self.origins[line] = origin
            body = [line]
        return cst.IndentedBlock(body, header=trailing(header), footer=_comment_lines(footer))

    def _add(self, node: Statement, origin: Origin) -> None:
        self.count += 1
        self.origins[node] = origin
        self.blocks[-1].append(node)

    # -- comments --------------------------------------------------------------------------------

    def take_comments(self) -> Lead:
        """The waiting comments as lines above the next statement."""
        lines = _comment_lines(self.comments)
        self.comments = []
        return lines


Lead = Sequence[cst.EmptyLine]


def _comment_lines(comments: Sequence[str]) -> list[cst.EmptyLine]:
    return [cst.EmptyLine(comment=cst.Comment(text)) for text in comments]


def trailing(comment: str | None) -> cst.TrailingWhitespace:
    """The end of a line, with a comment behind it."""
    if comment is None:
        return cst.TrailingWhitespace()
    return cst.TrailingWhitespace(cst.SimpleWhitespace("  "), cst.Comment(comment))


def target_node(names: Sequence[str], brackets: bool) -> cst.Name | cst.Tuple:
    """One name, or several as a tuple."""
    if len(names) == 1:
        return cst.Name(names[0])
    node = tuple_node([cst.Element(cst.Name(name)) for name in names])
    return node if brackets else node.with_changes(lpar=[], rpar=[])
