"""Diagnostics as text and as JSON, to the letter of the contract."""

from __future__ import annotations

import json

from tile2c.transpile.diagnostics import Diagnostic, Diagnostics, Note, Severity, Span
from tile2c.transpile.diagnostics.render import as_json, as_text, ordered

LINES = ["x = 1", "\tT.gemm(A_shared, B_shared, C_local)", "    f(", "        a,", "    )"]
PROBLEM = Diagnostic(
    Severity.ERROR,
    "T2C304",
    "A_shared is [128, 32] but gemm needs the same K as B_shared, which is [64, 128]",
    Span("gemm.py", 2, 8, 2, 16),
    (Note("B_shared is allocated here", Span("gemm.py", 20, 4, 20, 9)), Note("by hand")),
    "make both block_K",
)


def lines(name: str) -> list[str]:
    return LINES if name == "gemm.py" else []


def test_text() -> None:
    assert as_text(PROBLEM, lines) == (
        "gemm.py:2:9: error[T2C304]: A_shared is [128, 32] but gemm needs the same K as B_shared, "
        "which is [64, 128]\n"
        "\tT.gemm(A_shared, B_shared, C_local)\n"
        "\t       ^^^^^^^^\n"
        "   = note: B_shared is allocated here: gemm.py:20\n"
        "   = note: by hand\n"
        "   = help: make both block_K"
    )


def test_several_lines_are_marked_to_the_end_of_the_first() -> None:
    item = Diagnostic(Severity.WARNING, "T2C206", "so", Span("gemm.py", 3, 4, 5, 5))
    assert as_text(item, lines) == "gemm.py:3:5: warning[T2C206]: so\n    f(\n    ^^"


def test_without_a_place_or_a_line() -> None:
    assert as_text(Diagnostic(Severity.ERROR, "T2C001", "so", None), lines) == "error[T2C001]: so"
    elsewhere = Diagnostic(Severity.ERROR, "T2C101", "so", Span("other.py", 7, 0, 7, 1))
    assert as_text(elsewhere, lines) == "other.py:7:1: error[T2C101]: so"


def test_json() -> None:
    assert json.loads(as_json(PROBLEM)) == {
        "file": "gemm.py",
        "line": 2,
        "col": 9,
        "end_line": 2,
        "end_col": 17,
        "severity": "error",
        "code": "T2C304",
        "message": PROBLEM.message,
        "notes": ["B_shared is allocated here: gemm.py:20", "by hand"],
        "help": "make both block_K",
    }
    assert "\n" not in as_json(PROBLEM)


def test_order() -> None:
    found = Diagnostics()
    for line in (3, 1, 2):
        found.error("T2C101", "so", Span("a.py", line, 0, line, 1))
    found.error("T2C001", "so", None)
    assert [item.span.line if item.span else 0 for item in ordered(found.items)] == [0, 1, 2, 3]
