"""The verifier: each rule broken once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ir_programs import ADD, GEMM
from normal_text import built
from tile2c.transpile.ir.dtypes import FLOAT16, FLOAT32, INT32
from tile2c.transpile.ir.expr import Binary, Cast, Const, Var, const
from tile2c.transpile.ir.forms import Fill, Function, Gemm, Jump, Let, Parallel, Stmt, Store
from tile2c.transpile.ir.verify import VerifyError, verify
from tile2c.transpile.ir.walk import statements


def with_body(function: Function, body: tuple[Stmt, ...]) -> Function:
    return replace(function, launches=(replace(function.launches[0], body=body),))


def with_value(change: object) -> Function:
    """`add` with another stored value."""
    function = built(ADD)
    loop = function.launches[0].body[0]
    assert isinstance(loop, Parallel)
    store = loop.body[0]
    assert isinstance(store, Store) and isinstance(store.value, Binary)
    value = change(store.value)  # type: ignore[operator]
    return with_body(function, (replace(loop, body=(replace(store, value=value),)),))


BROKEN = {
    "a stored value of another type": (
        lambda value: Cast(dtype=FLOAT16, a=value),
        r"C\[bx \* block_N \+ i\] = float16\(.*\) is float16, not float32",
    ),
    "sides of two types": (
        lambda value: replace(value, b=const(1)),
        "sides are float32 and int32, the result float32",
    ),
    "a cast to its own type": (
        lambda value: Cast(dtype=FLOAT32, a=value),
        "a cast to its own type, or to bool",
    ),
    "an unknown variable": (
        lambda value: Var(dtype=FLOAT32, name="x", kind="temporary"),
        "x: not in scope, or of another type",
    ),
    "an integer as a float": (
        lambda value: Const(dtype=FLOAT32, value=1),
        "a float that is an integer",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_expressions(name: str) -> None:
    change, message = BROKEN[name]
    with pytest.raises(VerifyError, match=message):
        verify(with_value(change))


def test_names_are_unique() -> None:
    function = built(ADD)
    let = Let(var=Var(dtype=INT32, name="i", kind="temporary"), value=const(1))
    with pytest.raises(VerifyError, match="i is defined twice"):
        verify(with_body(function, (let, *function.launches[0].body)))


def test_statements() -> None:
    function = built(GEMM)
    body = function.launches[0].body
    gemm = next(stmt for stmt in statements(body) if isinstance(stmt, Gemm))
    with pytest.raises(VerifyError, match="the result is not a fragment"):
        verify(with_body(function, (replace(gemm, c=gemm.a),)))
    with pytest.raises(VerifyError, match="K differs"):
        verify(with_body(function, (replace(gemm, b=gemm.a),)))
    with pytest.raises(VerifyError, match="a jump out of no serial loop"):
        verify(with_body(function, (Jump(kind="break"),)))
    fill = body[0]
    assert isinstance(fill, Fill)
    ranges = (replace(fill.dst.ranges[0], start=const(1)), fill.dst.ranges[1])
    with pytest.raises(VerifyError, match="is outside its buffer"):
        verify(with_body(function, (replace(fill, dst=replace(fill.dst, ranges=ranges)),)))
    with pytest.raises(VerifyError, match="2048 threads"):
        launch = replace(function.launches[0], threads=(2048, 1, 1))
        verify(replace(function, launches=(launch,)))
