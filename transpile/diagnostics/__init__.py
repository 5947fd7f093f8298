"""What is wrong with the input, as values; `render` turns them into text or JSON."""

from tile2c.transpile.diagnostics.diagnostic import (
    Diagnostic,
    Diagnostics,
    InputError,
    Note,
    Severity,
    Span,
)

__all__ = ["Diagnostic", "Diagnostics", "InputError", "Note", "Severity", "Span"]
