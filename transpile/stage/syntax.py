"""Questions about a program's syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's body without those of functions inside it."""
    stack = list(ast.iter_child_nodes(function))
    while stack:
        node = stack.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            stack[:0] = list(ast.iter_child_nodes(node))


@lru_cache(maxsize=4096)
def is_generator(function: ast.AST) -> bool:
    """Whether calling a function gives what it yields."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function))
