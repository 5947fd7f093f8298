"""Prints expressions as C, with brackets only where precedence needs them or a reader would stop."""

from __future__ import annotations

import json
import math

from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Logical,
    Reinterpret,
    Select,
    Unary,
    Var,
)
from tile2c.transpile.lower.plan import Address, CCall, Element, Text, Wide
from tile2c.transpile.targets.target import Dialect

# C's precedence, tighter binds higher.
_PRIMARY, _UNARY, _MUL, _ADD, _SHIFT, _REL, _EQ, _AND, _XOR, _OR, _LAND, _LOR, _COND = range(
    13, 0, -1
)

_BINARY = {
    "*": ("*", _MUL),
    "/": ("/", _MUL),
    "truncdiv": ("/", _MUL),
    "truncmod": ("%", _MUL),
    "+": ("+", _ADD),
    "-": ("-", _ADD),
    "<<": ("<<", _SHIFT),
    ">>": (">>", _SHIFT),
    "&": ("&", _AND),
    "^": ("^", _XOR),
    "|": ("|", _OR),
}
_COMPARE = {"==": _EQ, "!=": _EQ, "<": _REL, "<=": _REL, ">": _REL, ">=": _REL}

_BY_ARGUMENT = frozenset(("isnan", "isinf", "isfinite", "popcount", "clz", "ffs"))


class CPrinter:
    """Expression to C text, with the type and function names of one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def __call__(self, expr: Expr) -> str:
        """The expression as C."""
        return self._print(expr)[0]

    def type_name(self, dtype: DType) -> str:
        return self.dialect.types[dtype.name]

    def _print(self, expr: Expr) -> tuple[str, int]:
        if isinstance(expr, Const):
            return self._const(expr)
        if isinstance(expr, Var):
            return expr.name, _PRIMARY
        if isinstance(expr, Element):
            return expr.array + "".join(f"[{self(s)}]" for s in expr.subscripts), _PRIMARY
        if isinstance(expr, CCall):
            template = f"<{', '.join(self(t) for t in expr.template)}>" if expr.template else ""
            args = ", ".join(self._long(arg) for arg in expr.args)
            return f"{expr.function}{template}({args})", _PRIMARY
        if isinstance(expr, Address):
            return f"&{self._at(expr.element, _UNARY)}", _UNARY
        if isinstance(expr, Text):
            return json.dumps(expr.text), _PRIMARY
        if isinstance(expr, Wide):
            return f"size_t({self(expr.a)})", _PRIMARY
        if isinstance(expr, Binary):
            return self._binary(expr)
        if isinstance(expr, Unary):
            sign = "!" if expr.op == "not" else expr.op
            text = self._at(expr.a, _UNARY)
            return f"{sign}({text})" if text.startswith(sign) else f"{sign}{text}", _UNARY
        if isinstance(expr, Compare):
            level = _COMPARE[expr.op]
            if expr.op == "<" and isinstance(expr.a, Const) and not isinstance(expr.b, Const):
                return f"{self._at(expr.b, level + 1)} > {self._at(expr.a, level + 1)}", level
            return f"{self._at(expr.a, level + 1)} {expr.op} {self._at(expr.b, level + 1)}", level
        if isinstance(expr, Logical):
            return self._logical(expr)
        if isinstance(expr, Select):
            condition = self._at(expr.condition, _COND + 1)
            return f"{condition} ? {self._at(expr.a, _COND + 1)} : {self._at(expr.b, _COND)}", _COND
        if isinstance(expr, Cast):
            return self._cast(expr)
        if isinstance(expr, Call):
            return self._call(expr.function, expr.dtype, expr.args)
        if isinstance(expr, Reinterpret):
            return self._call("reinterpret", expr.dtype, (expr.a,))
        if isinstance(expr, Load):
            raise TypeError(f"a plan holds no unlowered load of {expr.buffer.name}")
        raise TypeError(f"cannot print {type(expr).__name__}")

    def _at(self, expr: Expr, level: int) -> str:
        """The text, bracketed if it binds looser than `level`."""
        text, own = self._print(expr)
        return text if own >= level else f"({text})"

    def _args(self, args: tuple[Expr, ...]) -> str:
        return ", ".join(self(arg) for arg in args)

    def _binary(self, expr: Binary) -> tuple[str, int]:
        if expr.op in ("min", "max", "pow"):
            return self._call(expr.op, expr.a.dtype, (expr.a, expr.b))
        if expr.op not in _BINARY:
            raise TypeError(f"{expr.op} has to be lowered before printing")
        sign, level = _BINARY[expr.op]
        left, right = level, level + 1
        if expr.op == "+" and expr.dtype.is_integer:
            right = level  # a + (b + c) is a + b + c for integers
        if level in (_SHIFT, _AND, _XOR, _OR):  # a reader stops at mixed bit operations
            left = right = _MUL
        return f"{self._at(expr.a, left)} {sign} {self._at(expr.b, right)}", level

    def _logical(self, expr: Logical) -> tuple[str, int]:
        sign, level = ("&&", _LAND) if expr.op == "and" else ("||", _LOR)
        inner = level if expr.op == "and" else _LAND + 1  # && inside || gets brackets

        def side(part: Expr) -> str:
            same = isinstance(part, Logical) and part.op == expr.op
            return self._at(part, level if same else max(inner, level + 1))

        return f"{side(expr.a)} {sign} {side(expr.b)}", level

    def _call(self, function: str, dtype: DType, args: tuple[Expr, ...]) -> tuple[str, int]:
        if dtype.kind == "bool":  # isnan and its like: the type is the argument's
            dtype = args[0].dtype
        if function == "abs" and dtype.kind == "uint":
            return self._print(args[0])  # C has no abs of these, or an ambiguous one
        if function in _BY_ARGUMENT:
            return self._of_argument(function, args[0])
        name = self.dialect.functions.get((function, dtype.name))
        wide = self.dialect.functions.get((function, "float32"))
        if name is None and wide is not None and dtype.name in self.dialect.from_float:
            there, back = self.dialect.to_float[dtype.name], self.dialect.from_float[dtype.name]
            inner = ", ".join(f"{there}({self(arg)})" for arg in args)
            return f"{back}({wide}({inner}))", _PRIMARY
        if name is None:
            raise TypeError(f"{function} of {dtype} has no spelling in this dialect")
        if dtype.name == "int64" and function in ("min", "max"):
            return f"{name}({', '.join(self._long(arg) for arg in args)})", _PRIMARY
        text = f"{name}({self._args(args)})"
        if function == "abs" and dtype.kind == "int" and dtype.bits < 32:
            return self._as(dtype, text)  # an int in C: of -128 it would be 128
        return text, _PRIMARY

    def _as(self, dtype: DType, text: str) -> tuple[str, int]:
        """The call as a value of the type; `signed char(x)` is no C."""
        name = self.type_name(dtype)
        return (f"({name}){text}", _UNARY) if " " in name else (f"{name}({text})", _PRIMARY)

    def _of_argument(self, function: str, arg: Expr) -> tuple[str, int]:
        """A function whose result has a type of its own: the argument's says how it is spelled."""
        text, dtype = self(arg), arg.dtype.name
        name = self.dialect.functions.get((function, dtype))
        if name is None and dtype in self.dialect.to_float:
            text = f"{self.dialect.to_float[dtype]}({text})"
            name = self.dialect.functions.get((function, "float32"))
        if name is None:
            raise TypeError(f"{function} of {dtype} has no spelling in this dialect")
        return f"{name}({text})", _PRIMARY

    def _long(self, expr: Expr) -> str:
        """An argument of a function that C overloads: `0ll` in 64 bits, as `0` would be an int."""
        if not isinstance(expr, Const) or expr.dtype.name != "int64":
            return self(expr)
        text = self(expr)
        if expr.name is not None:
            return f"({self.dialect.types['int64']}){text}"
        return f"{text}ll" if text.lstrip("-").isdigit() else text

    def _cast(self, expr: Cast) -> tuple[str, int]:
        source, target = expr.a.dtype, expr.dtype
        if target.name == "float32" and source.name in self.dialect.to_float:
            return f"{self.dialect.to_float[source.name]}({self(expr.a)})", _PRIMARY
        if source.name == "float32" and target.name in self.dialect.from_float:
            return f"{self.dialect.from_float[target.name]}({self(expr.a)})", _PRIMARY
        if self.dialect.is_bits(source.name) or self.dialect.is_bits(target.name):
            return self._through_float(expr), _PRIMARY
        if {source.name, target.name} == {
            "float16",
            "bfloat16",
        }:  # headers differ in what they have
            there = self.dialect.to_float.get(source.name)
            back = self.dialect.from_float.get(target.name)
            if there is not None and back is not None:
                return f"{back}({there}({self(expr.a)}))", _PRIMARY
        if target.name == "bool":
            return f"{self._at(expr.a, _EQ + 1)} != 0", _EQ
        name = self.type_name(target)
        if " " in name:  # `long long(x)` is no C
            return f"({name}){self._at(expr.a, _UNARY)}", _UNARY
        return f"{name}({self(expr.a)})", _PRIMARY

    def _through_float(self, expr: Cast) -> str:
        """A conversion from or to a type that is kept as bits."""
        source, target = expr.a.dtype.name, expr.dtype.name
        there = self.dialect.to_float.get(source, "" if source == "float32" else "float")
        back = self.dialect.from_float.get(target, self.dialect.types[target])
        value = f"{there}({self(expr.a)})" if there else self(expr.a)
        return f"({back}){value}" if " " in back else f"{back}({value})"

    def _const(self, expr: Const) -> tuple[str, int]:
        if expr.name is not None:
            return expr.name, _PRIMARY
        value, dtype = expr.value, expr.dtype
        if dtype.kind == "bool":
            return ("true" if value else "false"), _PRIMARY
        if dtype.is_float:
            text = float_literal(float(value))
            level = _UNARY if text.startswith("-") else _PRIMARY
            if dtype.name == "float64":
                return text.removesuffix("f"), level
            if dtype.name == "float32":
                return text, level
            if self.dialect.is_bits(dtype.name):
                return f"{self.dialect.from_float[dtype.name]}({text})", _PRIMARY
            return f"{self.type_name(dtype)}({text})", _PRIMARY
        number = int(value)
        text = str(number)
        if dtype.name == "int64" and not -(2**31) < number < 2**31:
            text += "ll"
        if number < 0 and number == -(2 ** (dtype.bits - 1)) and dtype.bits >= 32:
            text = text.replace(str(-number), str(-number - 1))
            return f"{text} - 1", _ADD  # 2147483648 is no int, so its negative is none either
        if dtype.kind == "uint" and dtype.bits >= 32:
            text += "u" if dtype.bits == 32 else "ull"
        return text, _UNARY if text.startswith("-") else _PRIMARY


def float_literal(value: float) -> str:
    """The shortest C float literal that reads back as this float32 (or double) value."""
    if math.isnan(value):
        return "not_a_number"
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value)}.f" if not (value == 0 and math.copysign(1, value) < 0) else "-0.f"
    text = repr(value)
    return f"{text}f"
