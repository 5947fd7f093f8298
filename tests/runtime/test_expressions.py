"""The manifest's expressions: what they may say, and that nothing else gets through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tile2c.runtime.expressions import ExpressionError, evaluate, names_of, solve

NAMES = {"M": 200, "N": 136, "A": 0x7F00, "zero": 0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(N + 127) / 128", 2),
        ("N // 8 * 8", 136),
        ("-M % 7", -200 % 7),
        ("ceildiv(M, 128)", 2),
        ("min(M, N, 5) + max(1, 2)", 7),
        ("N % 8 == 0 and A % 16 == 0", 1),
        ("N % 16 == 0 or M < 0", 0),
        ("not N % 8", 1),
        ("0 < N <= 136", 1),
        (7, 7),
        ("1", 1),
    ],
)
def test_values(text: str | int, value: int) -> None:
    assert evaluate(text, NAMES) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "M.real",
        "M[0]",
        "lambda: 0",
        "2 ** M",
        "1 << M",
        "'a' * M",
        "1.5",
        "min(M)",
        "open(M)",
        "M if N else 0",
        "M +",
        "(" * 300 + "M" + ")" * 300,
        "+".join(["-" * 250 + "M"]),
        "M" * 20_000,
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, NAMES)


def test_unknown_names_and_division_by_zero_are_told() -> None:
    with pytest.raises(ExpressionError, match="K is not known"):
        evaluate("K + 1", NAMES)
    with pytest.raises(ExpressionError, match="divides by zero"):
        evaluate("M / zero", NAMES)
    assert names_of("ceildiv(M, 2) + N") == {"M", "N"}


@given(st.integers(-1000, 1000), st.integers(-50, 50).filter(bool))
def test_division_is_that_of_c(left: int, right: int) -> None:
    assert evaluate("a / b", {"a": left, "b": right}) == int(left / right)


@given(st.integers(0, 500), st.integers(1, 9), st.integers(0, 9))
def test_shapes_are_solved_for_their_size(size: int, factor: int, offset: int) -> None:
    text = f"{factor} * (X + {offset})"
    assert solve(text, factor * (size + offset), {}) == ("X", size)
    assert solve("X // 2", size, {}) is None
    assert solve("X + Y", 5, {"Y": 2}) == ("X", 3)
