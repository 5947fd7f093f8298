"""Every code with one line on what it means. Stable: a code is never given a second meaning.

1xx reading and host code · 2xx the tile language: names, types, indices · 3xx tile statements:
copy, gemm, reduce, loops · 4xx memory and launch · 5xx a target's limits · 6xx output folder.
"""

from __future__ import annotations

CODES: dict[str, str] = {}


def describe(code: str, summary: str) -> str:
    """Registers a code; called at module level by the list below only."""
    if code in CODES:
        raise ValueError(f"{code} is taken")
    CODES[code] = summary
    return code
