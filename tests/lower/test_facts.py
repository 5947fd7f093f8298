"""Questions about sizes and indices: answered like an enumeration of small cases, never a guess."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Expr, Var, const
from tile2c.transpile.lower.facts import Facts, _evaluate


def var(name: str, kind: str = "loop") -> Var:
    return Var(dtype=INT32, name=name, kind=kind)  # type: ignore[arg-type]


def op(sign: str, a: Expr, b: Expr) -> Expr:
    return Binary(dtype=INT32, op=sign, a=a, b=b)  # type: ignore[arg-type]


M, BX, I = var("M", "size"), var("bx", "block"), var("i")
TILE = op("+", op("*", BX, const(128)), I)


def tiles() -> Facts:
    rows = op("ceildiv", M, const(128))
    return Facts().with_range(BX, const(0), rows).with_range(I, const(0), const(128))


def test_the_last_tile_may_leave_the_tensor() -> None:
    assert not tiles().less(TILE, M)
    assert tiles().non_negative(TILE)


def test_a_promise_settles_it() -> None:
    assert tiles().with_divisor(M, 128).less(TILE, M)
    assert tiles().with_divisor(M, 256).less(TILE, M)
    assert not tiles().with_divisor(M, 64).less(TILE, M)


def test_conditions_count() -> None:
    from tile2c.transpile.lower.build import less

    assert tiles().with_condition(less(TILE, M)).less(TILE, M)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Expr:
    """Linear forms with // and % by constants over two variables."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([var("x"), var("y"), const(draw(st.integers(-9, 9)))]))
    sign = draw(st.sampled_from(["+", "-", "*", "//", "%"]))
    a = draw(expressions(depth=depth - 1))
    if sign == "*":
        return op(sign, a, const(draw(st.integers(-4, 4))))
    if sign in ("//", "%"):
        return op(sign, a, const(draw(st.integers(1, 7))))
    return op(sign, a, draw(expressions(depth=depth - 1)))


@settings(max_examples=300, deadline=None)
@given(expressions(), st.integers(0, 6), st.integers(0, 6), st.integers(-20, 20))
def test_at_least_agrees_with_enumeration(expr: Expr, nx: int, ny: int, low: int) -> None:
    facts = Facts().with_range(var("x"), const(0), const(nx + 1))
    facts = facts.with_range(var("y"), const(-ny), const(ny + 1))
    values = [
        _evaluate(expr, {"x": x, "y": y}) for x, y in product(range(nx + 1), range(-ny, ny + 1))
    ]
    assert facts.at_least(expr, low) == all(v is not None and v >= low for v in values)
