"""Values that exist only while device code is traced."""

from __future__ import annotations

import ast
from dataclasses import field

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.record import record
from tile2c.transpile.stage.buffers import Access
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.values import Cell, Scope, Value


@record(eq=False, frozen=False)
class RuntimeRegion:
    """A body that runs under run-time control; what it binds ends with it."""

    kind: str  # "if", "for", "while", "with"
    span: Span
    bound: list[tuple[Scope, Cell, Span | None]] = field(default_factory=list)


@record(eq=False)
class Reference:
    """A `T.Ref` parameter: an element whose index was evaluated at the call."""

    access: Access


@record(eq=False)
class Loop:
    """What a `for` of the kernel iterates over, spelled canonically."""

    kind: str  # "serial", "Parallel", "Pipelined", "unroll", "vectorized", "grid", "Persistent"
    args: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...] = ()

    @property
    def variables(self) -> int:
        """How many loop variables there are."""
        if self.kind in ("Parallel", "grid"):
            return len(self.args)
        if self.kind == "Persistent":
            return len(self.args[0].args)
        return 1


@record(eq=False)
class Context:
    """What a `with` of device code opens."""

    kind: str  # "Kernel", "ws", "attr", "block", "If", "Then", "Else", "While"
    node: ast.AST
    grid: tuple[Expr, ...] = ()
    keywords: tuple[tuple[str, Expr], ...] = ()
    args: tuple[Expr, ...] = ()
    value: Value = None


@record(eq=False)
class TensorType:
    """The annotation of a parameter."""

    kind: str  # "Tensor", "StridedTensor", "ptr", "handle"
    shape: tuple[Expr, ...]
    dtype: str
    strides: tuple[Expr, ...] | None = None
    value: Value = None
