"""Every code with one line on what it means. Stable: a code is never given a second meaning."""

from __future__ import annotations

CODES: dict[str, str] = {
    # 1xx: reading the file, and host code that has to be evaluated
    # 2xx: the tile language: names, types, indices, expressions
    # 3xx: tile statements: copy, gemm, reduce, loops
    # 4xx: memory and launch
    # 5xx: what a target cannot do
    # 6xx: the output folder
}
