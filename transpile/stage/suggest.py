"""What an author probably meant and can type: types of parameters, the launch that block loops stand for.

Nothing here is decided for the author: the texts are the `help` of errors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_LOOPS = ("serial", "Serial", "range", "Pipelined", "unroll", "Unroll")
_MOST_BLOCK_LOOPS = 3  # dimensions of a grid


def tensor_type(function: ast.AST, name: str) -> str:
    """`T.Tensor((M, K), dtype)` for a parameter, its extents from the loops that index it."""
    loops = dict(_extents(function))
    shapes = [tuple(_extent(part, loops) for part in index) for index in _accesses(function, name)]
    best = max(shapes, key=lambda shape: sum(part is not None for part in shape), default=None)
    free = ["N"] if best is not None and len(best) == 1 else ["M", "N", "K", "L", "P", "Q"]
    free = [letter for letter in free if best is None or letter not in best]
    extents = [part or (free.pop(0) if free else "n") for part in best or (None, None)]
    inside = ", ".join(extents) + ("," if len(extents) == 1 else "")
    return f"T.Tensor(({inside}), dtype)"


def launch_of(function: ast.FunctionDef) -> tuple[ast.For, str] | None:
    """The outermost loop over blocks, and the `with T.Kernel(...)` that says the same."""
    loop = next((stmt for stmt in function.body if isinstance(stmt, ast.For)), None)
    if loop is None or _stop(loop.iter) is None:
        return None
    found: list[tuple[str, str]] = []
    inner: ast.stmt = loop
    while isinstance(inner, ast.For) and len(found) < _MOST_BLOCK_LOOPS:
        stop = _stop(inner.iter)
        if stop is None or not isinstance(inner.target, ast.Name):
            break
        found.insert(0, (inner.target.id, ast.unparse(stop)))
        if len(inner.body) != 1:
            break
        inner = inner.body[0]
    names = ", ".join(name for name, _ in found)
    grid = ", ".join(extent for _, extent in found)
    target = f"({names})" if len(found) > 1 else names
    return loop, f"with T.Kernel({grid}, threads=128) as {target}:"


def _stop(loop: ast.expr) -> ast.expr | None:
    """The end of `T.serial(n)` or `range(0, n)`."""
    if not isinstance(loop, ast.Call) or not loop.args:
        return None
    function = loop.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in _LOOPS:
        return None
    return loop.args[0] if len(loop.args) == 1 else loop.args[1]


def _extents(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Loop variables and block indices with the number of values that each takes."""
    for node in ast.walk(function):
        if isinstance(node, ast.For):
            yield from _targets(node.target, node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield from _targets(node.optional_vars, node.context_expr)


def _targets(target: ast.expr, loop: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(loop, ast.Call):
        pairs = zip(target.elts, loop.args, strict=False)
        yield from ((name.id, extent) for name, extent in pairs if isinstance(name, ast.Name))
    elif isinstance(target, ast.Name):
        stop = _stop(loop)
        if stop is None and isinstance(loop, ast.Call) and len(loop.args) == 1:
            stop = loop.args[0]
        if stop is not None:
            yield target.id, stop


def _accesses(function: ast.AST, name: str) -> Iterator[list[ast.expr]]:
    """The indices of each access of `name`: `name[i, j]`, and the old T.load(name, i)."""
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and getattr(node.value, "id", None) == name:
            yield node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        elif isinstance(node, ast.Call) and old_access(node) == name:
            yield [node.args[1]]


def old_access(node: ast.Call) -> str | None:
    """The tensor of `T.load(tensor, i)` or `T.store(tensor, i, value)`."""
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr not in ("load", "store"):
        return None
    first = node.args[0] if len(node.args) > 1 else None
    return first.id if isinstance(first, ast.Name) else None


def _extent(part: ast.expr, loops: dict[str, ast.expr]) -> str | None:
    """How far an index goes: all of M for one that counts tiles of M, else the loop's own extent."""
    if isinstance(part, ast.Slice):
        return _extent(part.lower, loops) if part.lower is not None else None
    own = [node.id for node in ast.walk(part) if isinstance(node, ast.Name) and node.id in loops]
    for name in own:
        count = loops[name]
        function = count.func if isinstance(count, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr in ("ceildiv", "cdiv"):
            assert isinstance(count, ast.Call)
            return ast.unparse(count.args[0])
    return ast.unparse(loops[own[0]]) if len(own) == 1 and isinstance(part, ast.Name) else None
