"""Where a piece of the normal form came from."""

from __future__ import annotations

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.record import record


@record
class Origin:
    """The author's text behind a statement or expression.

    `quote` is the whole statement on one line (a compound one without its body), empty for an
    expression; `expanded_from` are the calls that were inlined to get there, innermost first.
    """

    span: Span
    quote: str
    expanded_from: tuple[Span, ...] = ()
