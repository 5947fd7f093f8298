"""Operators and conversions against Python's integers and NumPy, on random values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from normal_text import body, built
from numpy.typing import NDArray
from tile2c.transpile.ir.constants import constant_value, difference
from tile2c.transpile.ir.dtypes import DTYPES, INT32
from tile2c.transpile.ir.expr import Binary, BinaryOp, Const, Expr, Var, const
from tile2c.transpile.ir.interpret import run
from tile2c.transpile.ir.interpret.evaluate import evaluate
from tile2c.transpile.ir.interpret.numbers import Numbers
from tile2c.transpile.ir.interpret.state import State
from tile2c.transpile.ir.printer import expression_text, print_function

Array = NDArray[Any]
int32s = st.integers(-(2**31), 2**31 - 1)
corners = st.sampled_from([0, 1, -1, 2, -2, 7, 2**31 - 1, -(2**31)]) | int32s
BARE = State(Numbers(False), {}, (1, 1, 1))


def wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


EXACT: dict[BinaryOp, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "truncdiv": truncated,
    "truncmod": lambda a, b: a - truncated(a, b) * b,
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}


def value_of(expr: Expr) -> Any:
    with np.errstate(all="ignore"):
        return evaluate(BARE, expr)


@pytest.mark.parametrize("op", EXACT)
@given(a=corners, b=corners)
@settings(max_examples=60)
def test_int32_wraps_and_floors(op: BinaryOp, a: int, b: int) -> None:
    if op in ("//", "%", "truncdiv", "truncmod", "ceildiv") and b == 0:
        return
    found = value_of(Binary(dtype=INT32, op=op, a=const(a), b=const(b)))
    assert found.dtype == np.int32
    assert int(found) == wrap(EXACT[op](a, b))


@given(a=st.integers(0, 255), b=st.integers(1, 255))
def test_unsigned_ceildiv(a: int, b: int) -> None:
    dtype = DTYPES["uint8"]
    node = Binary(dtype=dtype, op="ceildiv", a=const(a, dtype=dtype), b=const(b, dtype=dtype))
    assert int(value_of(node)) == -(-a // b)


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"]


@given(value=int32s, target=st.sampled_from(INTEGERS))
def test_integer_casts_wrap(value: int, target: str) -> None:
    found = Numbers(False).cast(np.asarray(value, np.int32), INT32, DTYPES[target])
    assert found == np.asarray(value, np.int64).astype(target)


@given(value=st.floats(-1e4, 1e4, width=32))
def test_float_to_integer_truncates_toward_zero(value: float) -> None:
    found = Numbers(False).cast(np.float32(value), DTYPES["float32"], INT32)  # type: ignore[arg-type]
    assert int(found) == int(value)


@given(value=st.floats(width=32))
def test_float_casts_round_to_nearest_even(value: float) -> None:
    numbers, source = Numbers(False), DTYPES["float32"]
    wide = np.asarray(value, np.float32)
    with np.errstate(all="ignore"):
        half = numbers.cast(wide, source, DTYPES["float16"])
        np.testing.assert_array_equal(half, wide.astype(np.float16))
        brain = numbers.cast(wide, source, DTYPES["bfloat16"])
        expected = wide.astype(ml_dtypes.bfloat16).astype(np.float32)
        np.testing.assert_array_equal(brain.astype(np.float32), expected)
        small = numbers.cast(wide, source, DTYPES["float8_e4m3fn"]).astype(np.float32)
    assert np.isnan(small) == np.isnan(wide)
    assert np.isnan(small) or abs(small) <= 448


# ---- whole kernels

KERNEL = built(
    body(
        """
        for i in T.Parallel(64):
            Q[i] = A[i] // B[i]
            R[i] = A[i] % B[i]
            S[i] = A[i] * B[i] + A[i]
        """,
        ", ".join(f"{name}: T.Tensor((64,), T.int32)" for name in "ABQRS"),
    )
)


@given(st.lists(st.tuples(corners, corners.filter(bool)), min_size=1, max_size=64))
@settings(max_examples=50)
def test_a_kernel_divides_as_python_does(pairs: list[tuple[int, int]]) -> None:
    a, b = np.ones((2, 64), np.int32)
    for place, (x, y) in enumerate(pairs):
        a[place], b[place] = x, y
    out = run(KERNEL, {"A": a, "B": b})
    for place, (x, y) in enumerate(pairs):
        assert out["Q"][place] == wrap(x // y)
        assert out["R"][place] == x % y
        assert out["S"][place] == wrap(x * y + x)


names = st.sampled_from(["n", "m", "i"])
leaves = st.integers(-9, 9).map(const) | names.map(
    lambda name: Var(dtype=INT32, name=name, kind="size")
)


def combined(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.builds(
        lambda op, a, b: Binary(dtype=INT32, op=op, a=a, b=b),
        st.sampled_from(["+", "-", "*"]),
        parts,
        parts,
    )


expressions: st.SearchStrategy[Expr] = st.recursive(leaves, combined, max_leaves=12)


def python_value(text: str, env: dict[str, int]) -> int:
    return int(eval(text, {"int32": int}, env))


@given(expr=expressions, env=st.fixed_dictionaries({name: st.integers(-9, 9) for name in "nmi"}))
def test_printed_brackets_mean_the_tree(expr: Expr, env: dict[str, int]) -> None:
    state = State(Numbers(False), {}, (1, 1, 1))
    state.env = {name: np.asarray(value, np.int32) for name, value in env.items()}
    with np.errstate(all="ignore"):
        found = int(evaluate(state, expr))
    assert found == wrap(python_value(expression_text(expr), env))


@given(a=expressions, b=expressions)
def test_a_known_difference_is_the_difference(a: Expr, b: Expr) -> None:
    known = difference(a, b)
    for env in ({"n": 3, "m": -5, "i": 7}, {"n": 0, "m": 11, "i": -2}):
        values = [python_value(expression_text(expr), env) for expr in (a, b)]
        assert known is None or known == values[0] - values[1]
    assert difference(a, a) == 0


@given(a=st.integers(-99, 99), b=st.integers(-99, 99), op=st.sampled_from(sorted(EXACT)))
def test_folding_agrees_with_evaluation(a: int, b: int, op: BinaryOp) -> None:
    node = Binary(dtype=INT32, op=op, a=const(a), b=const(b))
    folded = constant_value(node)
    if folded is None:
        assert b == 0
    else:
        assert folded == EXACT[op](a, b)


# ---- build: the type of every operation

TYPES = ["int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "bfloat16", "float32"]
COMMON = {
    ("int32", "uint32"): "uint32", ("float16", "bfloat16"): "float16",
    ("int8", "uint8"): "int32", ("int32", "float16"): "float16", ("int64", "float16"): "float16",
    ("int8", "int32"): "int32", ("float16", "float32"): "float32", ("uint32", "int64"): "int64",
}  # fmt: skip


@pytest.mark.parametrize("pair", COMMON)
def test_common_types(pair: tuple[str, str]) -> None:
    for left, right in (pair, pair[::-1]):
        params = f"A: T.Tensor((4,), T.{left}), B: T.Tensor((4,), T.{right})"
        function = built(body("x = A[0] + B[0]", params))
        (let,) = function.launches[0].body
        assert let.var.dtype.name == COMMON[pair]  # type: ignore[attr-defined]


LITERALS = {
    ("float16", "* 0.5"): "float32", ("float16", "* 2"): "float16", ("uint8", "+ 1"): "int32",
    ("uint8", ">> 2"): "uint8", ("int64", "+ 1"): "int64", ("uint32", "+ 1"): "uint32",
    ("int32", "/ 2.0"): "float32", ("bool", "+ 1"): "int32", ("float64", "* 0.1"): "float64",
    ("int8", "& 15"): "int8", ("int16", "* 2"): "int32",
}  # fmt: skip


@pytest.mark.parametrize("case", LITERALS)
def test_types_with_literals(case: tuple[str, str]) -> None:
    dtype, rest = case
    function = built(body(f"x = A[0] {rest}", f"A: T.Tensor((4,), T.{dtype})"))
    (let,) = function.launches[0].body
    assert let.var.dtype.name == LITERALS[case]  # type: ignore[attr-defined]


def test_a_literal_keeps_double_precision_beside_float64() -> None:
    function = built(body("A[0] = A[1] * 0.1", "A: T.Tensor((4,), T.float64)"))
    out = run(function, {"A": np.ones(4)})
    assert out["A"][0] == 0.1


def test_host_arithmetic_keeps_names_and_values() -> None:
    text = """
    block = 128
    scale = 0.1

    @T.prim_func
    def f(O: T.Tensor((4,), T.float64), P: T.Tensor((4,), T.int32)):
        with T.Kernel(1, threads=32) as bx:
            O[0] = scale * 3.0
            O[1] = 2.0 * 3.0
            P[0] = block * 2 - 1
            P[1] = 6 * 7
    """
    function = built(text)
    printed = print_function(function)
    assert "P[0] = block * 2 - 1" in printed
    assert "P[1] = 42" in printed
    assert "O[0] = scale * float64(3.0)" in printed
    out = run(function, {})
    assert out["O"][0] == 0.1 * 3.0 and out["P"][0] == 255
    stores = function.launches[0].body
    assert isinstance(stores[1].value, Const)  # type: ignore[attr-defined]
