"""What travels with a statement: its place, the author's text, and the comments around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import libcst as cst
from tile2c.transpile.diagnostics import Span
from tile2c.transpile.ir.build.context import Builder
from tile2c.transpile.ir.expr import Buffer
from tile2c.transpile.ir.forms import Launch, Stmt
from tile2c.transpile.record import record

Carrier = TypeVar("Carrier", Stmt, Buffer)


@record
class Notes:
    span: Span | None
    quote: str
    comments: tuple[str, ...]
    remark: str


def own_line_comments(lines: Sequence[cst.EmptyLine]) -> tuple[str, ...]:
    """Comments on lines of their own, without `#`."""
    return tuple(_text(line.comment) for line in lines if line.comment is not None)


def notes(b: Builder, node: cst.BaseStatement, part: cst.CSTNode | None = None) -> Notes:
    """Notes of a statement; `part` is the small statement meant, where a line holds several."""
    first = part is None or not isinstance(node, cst.SimpleStatementLine) or node.body[0] is part
    comments: tuple[str, ...] = ()
    remark = ""
    if isinstance(node, cst.SimpleStatementLine):
        comments = own_line_comments(node.leading_lines)
        remark = _trailing(node.trailing_whitespace)
    elif isinstance(node, (cst.For, cst.While, cst.If, cst.With, cst.FunctionDef)):
        comments = own_line_comments(node.leading_lines)
        if isinstance(node.body, cst.IndentedBlock):
            remark = _trailing(node.body.header)
    waiting, b.comments = tuple(b.comments), []
    comments = (*waiting, *comments) if first else waiting
    where: cst.CSTNode = node if part is None or part not in b.kernel.origins else part
    return Notes(
        span=b.span(where),
        quote=quote(b, where),
        comments=comments,
        remark=remark if first else "",
    )


def keep_footer(b: Builder, body: cst.BaseSuite) -> None:
    """Comments at the end of a block wait for the statement after it."""
    if isinstance(body, cst.IndentedBlock):
        b.comments.extend(own_line_comments(body.footer))


def quote(b: Builder, node: cst.CSTNode) -> str:
    """The author's text of a statement; the normal form's where the origin has none."""
    origin = b.kernel.origins.get(node)
    if origin is not None and origin.quote:
        return origin.quote
    text = b.kernel.module.code_for_node(_bare(node)).strip()
    line = " ".join(part.strip() for part in text.splitlines() if part.strip())
    return line.removesuffix(" pass").removesuffix(":")


def with_notes(stmt: Carrier, found: Notes) -> Carrier:
    return replace(
        stmt, span=found.span, quote=found.quote, comments=found.comments, remark=found.remark
    )


def launch_with_notes(launch: Launch, found: Notes) -> Launch:
    return replace(launch, span=found.span, quote=found.quote, comments=found.comments)


def _bare(node: cst.CSTNode) -> cst.CSTNode:
    """The statement without its body, comments and empty lines."""
    body = cst.SimpleStatementSuite([cst.Pass()])
    if isinstance(node, cst.SimpleStatementLine):
        return node.with_changes(leading_lines=(), trailing_whitespace=cst.TrailingWhitespace())
    if isinstance(node, (cst.For, cst.While, cst.With)):
        return node.with_changes(leading_lines=(), body=body)
    if isinstance(node, cst.If):
        return node.with_changes(leading_lines=(), body=body, orelse=None)
    return node


def _trailing(space: cst.TrailingWhitespace) -> str:
    return "" if space.comment is None else _text(space.comment)


def _text(comment: cst.Comment) -> str:
    return comment.value.removeprefix("#").removeprefix(" ").rstrip()
