"""From a path to a `Source`, with the sibling modules that it imports."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

from tile2c.transpile.diagnostics import Diagnostics, Span
from tile2c.transpile.read import gate
from tile2c.transpile.read.source import Source

MOST_SIBLINGS = 100


def read_source(path: Path, diagnostics: Diagnostics) -> Source | None:
    """Reads and parses `path`; None after an error. Raises OSError when it cannot be read."""
    return _read(path, path.as_posix(), diagnostics, {})


def _read(
    path: Path, name: str, diagnostics: Diagnostics, seen: dict[Path, Source]
) -> Source | None:
    data = path.read_bytes()
    text = gate.decode(data, name, diagnostics)
    tree = gate.parse(text, name, diagnostics) if text is not None else None
    if text is None or tree is None:
        return None
    siblings: dict[str, Source] = {}
    comments, pragmas = gate.comments(text)
    source = Source(
        path=path,
        name=name,
        text=text,
        sha256=hashlib.sha256(data).hexdigest(),
        module=tree,
        lines=tuple(text.split("\n")),
        comments=comments,
        pragmas=pragmas,
        siblings=siblings,
    )
    seen[path.resolve()] = source
    for module in sorted(set(_imported_modules(tree))):
        sibling = _find(path, module)
        if sibling is None or len(seen) >= MOST_SIBLINGS:
            continue
        known = seen.get(sibling.resolve())
        if known is None:
            # What is wrong with a sibling matters only where something of it is needed.
            known = _read(sibling, _name_beside(name, path, sibling), Diagnostics(), seen)
        if known is not None:
            siblings[module] = known
    return source


def _imported_modules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield module
            for alias in node.names:
                yield f"{module}.{alias.name}" if node.module else module + alias.name
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _find(path: Path, module: str) -> Path | None:
    """The file of `module`: relative ones from the importing file's folder, others beside it."""
    level = len(module) - len(module.lstrip("."))
    folder = path.parent
    for _ in range(level - 1):
        folder = folder.parent
    parts = [part for part in module[level:].split(".") if part]
    if not parts:
        return None
    base = folder.joinpath(*parts)
    for candidate in (base.with_name(base.name + ".py"), base / "__init__.py"):
        if candidate.is_file() and candidate.resolve() != path.resolve():
            return candidate
    return None


def _name_beside(name: str, path: Path, sibling: Path) -> str:
    try:
        inside = sibling.relative_to(path.parent)
    except ValueError:
        return sibling.as_posix()
    return (Path(name).parent / inside).as_posix()


def whole_file(source: Source) -> Span:
    """A span for what is wrong with a file as a whole: its first line."""
    return Span(source.name, 1, 0, 1, 0)
