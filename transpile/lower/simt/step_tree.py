"""Work on the tree of steps: what has to be ordered, and the statements it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.lower.plan import CStmt, Loop, Repeat, Section
from tile2c.transpile.lower.simt.steps import BranchStep, LoopStep, Node


def only_accesses_to(nodes: Sequence[Node], names: set[str]) -> tuple[Node, ...]:
    """The nodes without accesses that nobody has to order."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, LoopStep):
            found.append(replace(node, body=only_accesses_to(node.body, names)))
        elif isinstance(node, BranchStep):
            found.append(
                replace(
                    node,
                    then=only_accesses_to(node.then, names),
                    orelse=only_accesses_to(node.orelse, names),
                )
            )
        else:
            found.append(
                replace(
                    node,
                    accesses=tuple(x for x in node.accesses if x.buffer in names),
                    completes=tuple(x for x in node.completes if x.buffer in names),
                )
            )
    return tuple(found)


def flatten(nodes: Sequence[Node]) -> tuple[CStmt, ...]:
    """The step tree as statements."""
    found: list[CStmt] = []
    for node in nodes:
        if isinstance(node, LoopStep):
            found.append(_filled(node.frame, flatten(node.body)))
        elif isinstance(node, BranchStep):
            from tile2c.transpile.lower.plan import Branch

            found.append(
                Branch(
                    condition=node.condition,
                    then=flatten(node.then),
                    orelse=flatten(node.orelse),
                    comments=node.comments,
                )
            )
        else:
            found += node.body
    return tuple(found)


def _filled(frame: CStmt, body: tuple[CStmt, ...]) -> CStmt:
    if isinstance(frame, Section):
        return replace(frame, body=tuple(_filled(part, body) for part in frame.body))
    assert isinstance(frame, Loop | Repeat)
    return replace(frame, body=body)
