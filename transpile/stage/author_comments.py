"""Finds the author's comments: above, behind, inside and at the end of statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.record import record
from tile2c.transpile.stage.bindings import Bindings
from tile2c.transpile.stage.origins import Origin


@record(frozen=False)
class AuthorComments(Bindings):
    """Adds comments and origins of statements to the evaluator."""

    def origin(self, node: ast.AST, end: ast.AST | None = None) -> Origin:
        """The origin of a statement; a compound one ends with `end`, the last part of its head."""
        source = self.frame.source
        span = source.span(node)
        if end is not None:
            last = source.span(end)
            line = source.lines[last.end_line - 1]
            closing = last.end_col + (1 if line[last.end_col : last.end_col + 1] == ")" else 0)
            span = Span(span.file, span.line, span.col, last.end_line, closing)
            if source.cut(span).count("(") < source.cut(span).count(")"):
                span = Span(span.file, span.line, span.col, last.end_line, last.end_col)
        return Origin(span, source.cut(span), self.frame.calls)

    @property
    def here(self) -> Origin:
        """The origin of the statement that is traced now."""
        assert self.statement is not None
        return self.origin(self.statement)

    def _comments_before(self, node: ast.stmt, after: int, first: bool) -> Iterator[str]:
        column = node.col_offset
        for line in range(after + 1, node.lineno):
            comment = self.frame.source.comments.get(line)
            if comment is not None and comment.own_line and (first or comment.col <= column):
                yield comment.text

    def _comments_after(self, node: ast.stmt, line: int) -> Iterator[str]:
        source = self.frame.source
        body = getattr(node, "body", None)  # a comment of its depth ends that block
        inner = body[0].col_offset if isinstance(body, list) else 1000
        while line < len(source.lines):
            line += 1
            comment = source.comments.get(line)
            if comment is not None and comment.own_line and comment.col >= node.col_offset > 0:
                if comment.col < inner:
                    yield comment.text
            elif source.lines[line - 1].strip():
                return

    def _take_inner_comments(self, node: ast.stmt) -> None:
        """Comments inside a simple statement go above it, the one behind it stays behind."""
        last = node.end_lineno or node.lineno
        for line in range(node.lineno, last + 1):
            comment = self.frame.source.comments.get(line)
            if comment is None:
                continue
            if line == last and not comment.own_line:
                self.residual.trailing = comment.text
            else:
                self.residual.comments.append(comment.text)

    def header_comment(self, node: ast.stmt, body: list[ast.stmt]) -> str | None:
        """The comment behind the head of a compound statement."""
        for line in range(node.lineno, max(body[0].lineno, node.lineno + 1)):
            comment = self.frame.source.comments.get(line)
            if comment is not None and not comment.own_line:
                return comment.text
        return None

    def head_end(self, node: ast.stmt, end: ast.AST | None, body: list[ast.stmt]) -> int:
        """The last line of a compound statement's head."""
        return (getattr(end, "end_lineno", None) or node.lineno) if end else body[0].lineno - 1
