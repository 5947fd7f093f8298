"""The step tree: what a block does, in order, with the memory each step touches.

Barriers are placed between steps from these accesses; then the tree becomes the plan's statements.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field

from tile2c.transpile.ir.expr import Expr
from tile2c.transpile.lower.plan import CStmt
from tile2c.transpile.lower.simt.one_thread import Element
from tile2c.transpile.lower.simt.per_thread import Cells
from tile2c.transpile.record import record


@record(kw_only=True)
class Access:
    """A step reads or writes a buffer that threads share.

    `owner` says which thread touches which element: two accesses with equal owners need no barrier where
    the `element` determines the thread.
    `version`: with a ring of `depth` copies, the round (relative to that of the loop over `ring`) whose
    copy is touched.
    `asynchronous`: the step only starts the access; `Step.completes` elsewhere ends it.
    """

    buffer: str
    write: bool
    owner: Hashable | None = None
    version: int = 0
    depth: int = 1
    ring: str = ""
    asynchronous: bool = False
    proven: bool = True
    element: Element | None = None
    cells: Cells = ()  # the elements of each thread, where they follow from its index
    atomic: bool = False  # such accesses need no order among each other
    together: bool = False  # it is over for all threads of its team when it is for one


@record(kw_only=True)
class Step:
    """Statements without a barrier inside. `completes`: asynchronous writes of these buffers are done
    after it, in the issuing thread; they then count as written by this step."""

    body: tuple[CStmt, ...]
    accesses: tuple[Access, ...] = ()
    quote: str = ""
    completes: tuple[Access, ...] = ()
    meets: int = 0  # threads that the author lets meet here


@record(kw_only=True)
class LoopStep:
    """A loop around steps; `frame` is the loop statement with an empty body."""

    frame: CStmt
    body: tuple[Node, ...]
    runs: bool  # surely at least once
    name: str = ""
    uniform: bool = True  # all threads of the block run the same rounds
    var: str = ""  # what counts the rounds, if a round has one value of it for all statements
    binds: frozenset[str] = frozenset()  # names whose values differ between rounds


@record(kw_only=True)
class Team:
    """Threads that share tile statements: from which on, how many, and the call by which they meet."""

    first: int
    count: int
    meet: Expr | None


@record(kw_only=True)
class BranchStep:
    """A condition around steps; `uniform`: all threads of the block take the same side."""

    condition: Expr
    then: tuple[Node, ...]
    orelse: tuple[Node, ...] = ()
    uniform: bool = True
    comments: tuple[str, ...] = ()
    # of each side, where its threads can meet
    teams: tuple[Team | None, Team | None] = (None, None)


Node = Step | LoopStep | BranchStep


@record(frozen=False)
class SharedUse:
    """A shared array of the block, as declared in the text."""

    name: str
    dims: tuple[Expr, ...]
    bytes: int
    versions: int = 1
    words: str = "row-major"


@record(frozen=False)
class Scratch:
    """Shared arrays that lowering adds, in order."""

    arrays: list[SharedUse] = field(default_factory=list)
