"""What `build` asks of its input: one normalized kernel, with the places its parts came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from tile2c.transpile.diagnostics import Span

if TYPE_CHECKING:
    import libcst as cst


class Origin(Protocol):
    """Where a node of the normal form came from."""

    @property
    def span(self) -> Span: ...

    @property
    def quote(self) -> str:
        """The author's statement on one line; empty for expressions."""

    @property
    def expanded_from(self) -> tuple[Span, ...]:
        """Calls of macros and helpers through which it got here, innermost first."""


class NormalKernel(Protocol):
    """One prim_func in normal form."""

    @property
    def name(self) -> str:
        """Name of the kernel, and of its function in `module`."""

    @property
    def module(self) -> cst.Module: ...

    @property
    def text(self) -> str:
        """`module` as text."""

    @property
    def origins(self) -> Mapping[cst.CSTNode, Origin]: ...

    @property
    def promises(self) -> Mapping[str, int]:
        """Size -> divisor, from `-D M%16=0`."""

    @property
    def passed(self) -> tuple[str, ...]:
        """Sizes that are in no tensor's shape: arguments behind the author's."""

    @property
    def summary(self) -> str: ...

    @property
    def docstring(self) -> tuple[str, ...]:
        """The author's words about the kernel, line by line."""
