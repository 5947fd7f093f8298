"""Evaluates expressions of the program that is read: to host values, or to residual expressions.

Two attitudes share this engine. *Exact*: what is needed and unknown is a located error. *Survey*
(`exact=False`): anything may be Unknown. Work is bounded by fuel, sizes are checked beforehand.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tile2c.transpile.diagnostics import Diagnostics, InputError, Note, Span
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.read import Source
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage import host_arithmetic
from tile2c.transpile.stage.buffers import Access, Buffer, Piece, Region
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.linear import extent as extent_of
from tile2c.transpile.stage.linear import number
from tile2c.transpile.stage.values import (
    Cell,
    DType,
    Expired,
    Foreign,
    LanguageName,
    NotReady,
    Poison,
    Poisoned,
    Scope,
    Unknown,
    Value,
)

FUEL = 300_000
MOST_CALLS = 50
MOST_DEPTH = 150

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
    ast.Not: "not",
    ast.And: "and",
    ast.Or: "or",
}
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))


@dataclass(slots=True)
class Frame:
    """Where evaluation stands: the names in sight and the text that is evaluated."""

    scope: Scope
    source: Source
    path: tuple[str, ...] = ()  # functions and classes around, outermost first
    calls: tuple[Span, ...] = ()  # the calls that were inlined to get here, innermost first
    device: bool = False  # statements are traced, not executed
    once: frozenset[str] = frozenset()  # names that the function binds in one place only
    function: str = ""


@dataclass(slots=True)
class Evaluator:
    """The state of one evaluation, and its expressions; statements and calls are added by heirs."""

    diagnostics: Diagnostics
    exact: bool
    frame: Frame
    fuel: int = FUEL
    order: int = 0
    constants: dict[str, Cell] = field(default_factory=dict)  # numbers that device code names
    taken: set[str] = field(default_factory=set)  # names that device code binds itself
    tracing: bool = False

    # -- places and failures ---------------------------------------------------------------------

    def span(self, node: ast.AST | None) -> Span | None:
        return None if node is None else self.frame.source.span(node)

    def fail(
        self, code: str, message: str, node: ast.AST | None, help: str | None = None
    ) -> InputError:
        """The error to raise, with the inlined calls that led to it as notes."""
        notes = tuple(Note("inlined from here", span) for span in self.frame.calls[:3])
        return failure(code, message, self.span(node), notes=notes, help=help)

    def burn(self, node: ast.AST, amount: int = 1) -> None:
        self.fuel -= amount
        if self.fuel < 0:
            raise self.fail(
                "T2C113",
                "evaluating this at build time takes too many steps; a loop may never end",
                node,
                help="`for i in T.serial(n)` makes it a loop of the kernel",
            )

    def known(self, value: Value, node: ast.AST | None, purpose: str) -> Value:
        """`value` where it is known now. Raises where it is not: `purpose` says who needs it."""
        if isinstance(value, Poison):
            raise Poisoned
        if isinstance(value, Unknown):
            note = (Note("it comes from here", value.span),) if value.span else ()
            quoted = self.frame.source.cut(self.frame.source.span(node)) if node else "this"
            raise failure(
                "T2C110",
                f"{quoted} cannot be evaluated without running the program, and {purpose} "
                f"needs it: {value.reason}",
                self.span(node),
                notes=note,
                help="pass the value as a parameter of the factory and fix it with -D NAME=VALUE",
            )
        if isinstance(value, Expired):
            raise self.fail(
                "T2C239",
                f"{value.name} is bound inside the `{value.region}` at line {value.bound.line} and "
                "cannot be used after it",
                node,
                help=f"declare it before: {value.name} = T.alloc_var(T.{value.dtype or 'float32'})",
            )
        return value

    def whole_number(self, value: Value, node: ast.AST | None, purpose: str) -> int:
        """An int that host code needs; a run-time size there makes the kernel not ready."""
        value = self.known(value, node, purpose)
        if isinstance(value, Expr):
            found = number(value)
            if found is not None:
                return found
            if value.sizes and not value.device:
                raise NotReady(min(value.sizes), purpose, self.span(node))
        elif isinstance(value, int):
            return int(value)
        elif isinstance(value, float) and value.is_integer():
            return int(value)
        shown = ex.text(value) if isinstance(value, Expr) else describe(value)
        raise self.fail(
            "T2C401", f"{purpose} needs a number known at build time, not {shown}", node
        )

    def need_decided(self, value: Value, node: ast.AST | None, why: str) -> None:
        """Raises NotReady where a run-time size stands in the place of a build-time number."""
        if isinstance(value, Expr) and value.sizes and not value.device:
            name = min(value.sizes)
            raise NotReady(name, f"{why} depends on {name}", self.span(node))

    def truth(self, value: Value, node: ast.AST, purpose: str = "this condition") -> bool | None:
        """A host condition; None where a survey does not know it."""
        if isinstance(value, Expr):
            if (found := number(value)) is not None:
                return bool(found)
            if not value.device and value.sizes:
                raise NotReady(min(value.sizes), f"{purpose} depends on it", self.span(node))
            raise self.fail(
                "T2C243",
                "a value of the running kernel cannot decide a condition at build time",
                node,
                help="use T.if_then_else, or move the condition into the kernel itself",
            )
        if isinstance(value, Unknown) and not self.exact:
            return None
        value = self.known(value, node, purpose)
        return bool(value) if not isinstance(value, Foreign) else True

    # -- dispatch --------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr) -> Value:
        self.burn(node)
        method = getattr(self, "_eval_" + type(node).__name__, None)
        if method is None:
            raise self.fail("T2C115", f"{type(node).__name__} is not supported here", node)
        value = method(node)
        if isinstance(value, Expr):
            if value.depth > MOST_DEPTH:
                raise self.fail("T2C114", "this expression grows too deep", node)
            if value.span is None:
                value = replace(value, span=self.span(node))
        return value

    def expression(self, value: Value, node: ast.expr | None) -> Expr:
        """`value` as a residual expression, by the names that `node` uses where it can be."""
        if isinstance(value, Expr):
            return value if node is None or self.frame.calls else value.at(self.span(node))
        if isinstance(value, bool | int | float):
            return self._spell(node, value) if node is not None else ex.literal(value)
        value = self.known(value, node, "the kernel")
        span = self.span(node)
        match value:
            case DType():
                return ex.language(value.name, span)
            case str():
                return ex.literal(value, span)
            case LanguageName():
                return ex.language(value.path, span)
            case Buffer(scope="var" | "barrier"):
                return value.expr(span)
            case tuple() | list():
                elements = self._element_nodes(node, len(value))
                parts = tuple(self.expression(v, n) for v, n in zip(value, elements, strict=True))
                kind: ex.Kind = "tuple" if isinstance(value, tuple) else "list"
                return ex.compound(kind, "", parts, span)
            case Buffer():
                raise self.fail(
                    "T2C246",
                    f"{value.name} is a whole buffer; an expression needs one element of it",
                    node,
                    help=f"{value.name}[{', '.join('ijkl'[: len(value.shape)])}]",
                )
            case _:
                raise self.fail("T2C246", f"{describe(value)} is no value of the kernel", node)

    @staticmethod
    def _element_nodes(node: ast.expr | None, count: int) -> list[ast.expr | None]:
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) == count:
            if not any(isinstance(element, ast.Starred) for element in node.elts):
                return list(node.elts)
        return [None] * count

    # -- how device code writes a host number ----------------------------------------------------

    def _spell(self, node: ast.expr, value: Value) -> Expr:
        spelled = self._spell_by_name(node, value)
        return spelled if spelled is not None else ex.literal(value, self.span(node))

    def _spell_by_name(self, node: ast.expr, value: Value) -> Expr | None:
        """The number with its names kept; None where it has none."""
        span = self.span(node)
        match node:
            case ast.Name():
                cell = self.frame.scope.find(node.id)
                if cell is None:
                    return None
                if cell.spelling is not None:
                    return cell.spelling.at(span)
                return self._constant(cell, value, span)
            case ast.UnaryOp() if not isinstance(node.op, ast.Not):
                inner = self._spell_by_name(node.operand, self.evaluate(node.operand))
                return ex.unary(_OPERATORS[type(node.op)], inner, span) if inner else None
            case ast.BinOp() if not isinstance(node.op, ast.Pow | ast.MatMult):
                return self._spell_pair(node, _OPERATORS[type(node.op)], node.left, node.right)
            case ast.IfExp():
                chosen = node.body if self.evaluate(node.test) else node.orelse
                return self._spell_by_name(chosen, value)
            case ast.Call(args=[left, right], keywords=[]):
                function = self.evaluate(node.func)
                if isinstance(function, LanguageName) and function.path in ("ceildiv", "cdiv"):
                    return self._spell_pair(node, "ceildiv", left, right)
        return None

    def _spell_pair(self, node: ast.expr, op: str, left: ast.expr, right: ast.expr) -> Expr | None:
        values = self.evaluate(left), self.evaluate(right)
        if not all(isinstance(value, int | float) for value in values):
            return None
        if not any(self._spell_by_name(*pair) for pair in zip((left, right), values, strict=True)):
            return None
        args = (self._spell(left, values[0]), self._spell(right, values[1]))
        span = self.span(node)
        return ex.call(op, args, span) if op == "ceildiv" else ex.binary(op, *args, span)

    def _constant(self, cell: Cell, value: Value, span: Span | None) -> Expr | None:
        """The number by its cell's name, which from now on the normal form defines."""
        if not cell.nameable or cell.name in self.taken or not isinstance(value, int | float):
            return None
        known = self.constants.setdefault(cell.name, cell)
        if type(known.value) is not type(value) or known.value != value:
            return None  # another scope holds the name
        return ex.constant(cell.name, value, span)

    # -- literals, names, displays ---------------------------------------------------------------

    def _eval_Constant(self, node: ast.Constant) -> Value:
        return node.value

    def _eval_Name(self, node: ast.Name) -> Value:
        cell = self.frame.scope.find(node.id)
        if cell is None:
            return self.global_name(node)
        value = cell.value
        if isinstance(value, Expired):
            self.known(value, node, "")
        return value

    def global_name(self, node: ast.Name) -> Value:
        raise NotImplementedError

    def _eval_Tuple(self, node: ast.Tuple) -> Value:
        return tuple(self._elements(node.elts))

    def _eval_List(self, node: ast.List) -> Value:
        return list(self._elements(node.elts))

    def _eval_Set(self, node: ast.Set) -> Value:
        return set(self._elements(node.elts))

    def _elements(self, nodes: Iterable[ast.expr]) -> Iterator[Value]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self.iterate(self.evaluate(node.value), node)
            else:
                yield self.evaluate(node)

    def _eval_Dict(self, node: ast.Dict) -> Value:
        result: dict[Value, Value] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.known(self.evaluate(value), value, "this dict")
                result.update(inner if isinstance(inner, dict) else {})
            else:
                result[self.hashable(self.evaluate(key), key)] = self.evaluate(value)
        return result

    def hashable(self, value: Value, node: ast.AST) -> Value:
        host_arithmetic.weigh(value)
        try:
            hash(value)
        except TypeError as error:
            raise self.fail("T2C112", f"this fails at build time: {error}", node) from None
        return value

    def _eval_JoinedStr(self, node: ast.JoinedStr) -> Value:
        pieces: list[str] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                pieces.append(str(part.value))
                continue
            assert isinstance(part, ast.FormattedValue)
            value = self.evaluate(part.value)
            form = self._eval_JoinedStr(part.format_spec) if part.format_spec else ""  # type: ignore[arg-type]
            if isinstance(form, Unknown) or isinstance(value, Unknown):
                return value if isinstance(value, Unknown) else form
            pieces.append(self._format(value, form, part))
        return "".join(pieces)

    def _format(self, value: Value, form: str, node: ast.AST) -> str:
        if isinstance(value, str | int | float):
            if len(form) > 6:
                raise self.fail("T2C114", "this format is too wide", node)
            try:
                return format(value, form)
            except ValueError as error:
                raise self.fail("T2C112", f"this fails at build time: {error}", node) from None
        host_arithmetic.weigh(value)
        return ex.text(value) if isinstance(value, Expr) else describe(value)

    def _eval_NamedExpr(self, node: ast.NamedExpr) -> Value:
        raise self.fail("T2C245", "`:=` is not part of the tile language", node)

    # -- operators -------------------------------------------------------------------------------

    def _eval_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        return self.operate(_OPERATORS[type(node.op)], left, right, node, node.left, node.right)

    def operate(
        self,
        op: str,
        left: Value,
        right: Value,
        node: ast.AST,
        left_node: ast.expr | None,
        right_node: ast.expr | None,
    ) -> Value:
        """`left op right` on values of any kind."""
        for value, at in ((left, left_node), (right, right_node)):
            if isinstance(value, Poison | Expired):
                self.known(value, at, "this expression")
        residual = any(isinstance(v, Expr) or is_variable(v) for v in (left, right))
        if residual and op in _COMPARISONS and (left is None or right is None):
            return op == "!="
        if residual:
            return self._residual_operation(op, left, right, node, left_node, right_node)
        for value in (left, right):
            if isinstance(value, Unknown):
                return value
            if isinstance(value, Foreign):
                return Unknown(f"{value.path} is not evaluated", self.span(node))
        return self._host_operation(op, left, right, node)

    def _host_operation(self, op: str, left: Value, right: Value, node: ast.AST) -> Value:
        if op in ("==", "!=") and (isinstance(left, DType) or isinstance(right, DType)):
            same = self.as_dtype(left) == self.as_dtype(right) is not None
            return same == (op == "==")
        for value in (left, right):
            if isinstance(value, Buffer):
                raise self.fail(
                    "T2C246",
                    f"{value.name} is a whole buffer; `{op}` needs an element of it",
                    node,
                    help="loop over the elements with T.Parallel",
                )
        try:
            return host_arithmetic.apply(op, left, right)
        except host_arithmetic.TooLarge:
            raise self.fail("T2C114", f"the result of `{op}` is too large", node) from None
        except (ArithmeticError, TypeError, ValueError) as error:
            if not self.exact:
                return Unknown(f"it fails: {error}", self.span(node))
            raise self.fail("T2C112", f"this fails at build time: {error}", node) from None

    def as_dtype(self, value: Value) -> str | None:
        raise NotImplementedError

    def _residual_operation(
        self,
        op: str,
        left: Value,
        right: Value,
        node: ast.AST,
        left_node: ast.expr | None,
        right_node: ast.expr | None,
    ) -> Expr:
        if op == "**":
            for value in (left, right):
                self.need_decided(value, node, "`**` is computed when the kernel is built, and it")
            raise self.fail(
                "T2C235",
                "`**` is not defined on values of the kernel",
                node,
                help=f"T.pow({self._quoted(left_node)}, {self._quoted(right_node)})",
            )
        if op == "@":
            raise self.fail("T2C243", "`@` is not defined in kernels", node, help="T.gemm(A, B, C)")
        args = self.expression(left, left_node), self.expression(right, right_node)
        if op in ("//", "%", "/") and args[1].kind == "literal" and args[1].value == 0:
            raise self.fail("T2C238", f"`{op}` by zero", right_node or node)
        return ex.binary(op, *args, self.span(node))

    def _quoted(self, node: ast.expr | None) -> str:
        return self.frame.source.cut(self.frame.source.span(node)) if node is not None else "x"

    def _eval_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value, op = self.evaluate(node.operand), _OPERATORS[type(node.op)]
        if isinstance(value, Expr) or is_variable(value):
            operand = self.expression(value, node.operand)
            return operand if op == "+" else ex.unary(op, operand, self.span(node))
        if op == "not":
            truth = self.truth(value, node.operand)
            return (
                Unknown("its operand is unknown", self.span(node)) if truth is None else not truth
            )
        if isinstance(value, Unknown):
            return value
        self.known(value, node.operand, "this expression")
        try:
            return host_arithmetic.apply_unary(op, value)
        except TypeError as error:
            raise self.fail("T2C112", f"this fails at build time: {error}", node) from None

    def _eval_Compare(self, node: ast.Compare) -> Value:
        result: Value = True
        left_node, left = node.left, self.evaluate(node.left)
        for op_node, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node)
            if type(op_node) in _OPERATORS:
                op = _OPERATORS[type(op_node)]
                step = self.operate(op, left, right, node, left_node, right_node)
            else:
                step = self._identity_test(op_node, left, right, node)
            if isinstance(step, Expr):
                result = step if result is True else ex.binary("and", result, step, self.span(node))
            elif isinstance(step, Unknown):
                return step
            elif not step:
                return False
            left_node, left = right_node, right
        return result

    def _identity_test(self, op: ast.cmpop, left: Value, right: Value, node: ast.AST) -> Value:
        negated = isinstance(op, ast.IsNot | ast.NotIn)
        if isinstance(op, ast.Is | ast.IsNot):
            if isinstance(left, Unknown) or isinstance(right, Unknown):
                return left if isinstance(left, Unknown) else right
            return (left is right or (isinstance(left, DType) and left == right)) != negated
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return left if isinstance(left, Unknown) else right
        if isinstance(right, Expr | Buffer) or isinstance(left, Expr):
            self.need_decided(left, node, "this test is decided when the kernel is built, and it")
            raise self.fail("T2C243", "`in` is not defined on values of the kernel", node)
        host_arithmetic.weigh(right)
        try:
            inside = left in right or (
                isinstance(left, DType) and any(self.as_dtype(r) == left.name for r in right)
            )
        except TypeError as error:
            raise self.fail("T2C112", f"this fails at build time: {error}", node) from None
        return inside != negated

    def _eval_BoolOp(self, node: ast.BoolOp) -> Value:
        op = _OPERATORS[type(node.op)]
        result: Value = None
        for position, part in enumerate(node.values):
            value = self.evaluate(part)
            if isinstance(value, Expr) or is_variable(value):
                right = self.expression(value, part)
                if isinstance(result, Expr):
                    right = ex.binary(op, result, right, self.span(node))
                result = right
                continue
            truth = self.truth(value, part)
            if truth is None:
                return Unknown("an operand is unknown", self.span(part))
            if isinstance(result, Expr):
                if truth == (op == "or"):  # a residual left side has no effect worth keeping
                    return truth
                continue
            if truth == (op == "or") or position == len(node.values) - 1:
                return value
        return result

    def _eval_IfExp(self, node: ast.IfExp) -> Value:
        test = self.evaluate(node.test)
        if isinstance(test, Expr) and (test.device or self.tracing) and number(test) is None:
            return self._choice(node, test)
        if is_variable(test):
            return self._choice(node, self.expression(test, node.test))
        truth = self.truth(test, node.test)
        if truth is None:
            return Unknown("its condition is unknown", self.span(node.test))
        return self.evaluate(node.body if truth else node.orelse)

    def _choice(self, node: ast.IfExp, test: Expr) -> Expr:
        sides = [self.expression(self.evaluate(side), side) for side in (node.body, node.orelse)]
        return ex.compound("choice", "", (test, *sides), self.span(node))

    # -- subscripts ------------------------------------------------------------------------------

    def _eval_Subscript(self, node: ast.Subscript) -> Value:
        owner = self.evaluate(node.value)
        if isinstance(owner, Buffer):
            access = self.access(owner, node)
            return self.read(access, node) if access.is_element else Region(access)
        if isinstance(owner, LanguageName):
            return self.language_subscript(owner, node)
        if isinstance(owner, Unknown | Foreign):
            return (
                owner if isinstance(owner, Unknown) else Unknown(f"{owner.path} is not evaluated")
            )
        index = self.evaluate(node.slice)
        if isinstance(index, Unknown):
            return index
        self.known(index, node.slice, "this subscript")
        owner = self.known(owner, node.value, "this subscript")
        if isinstance(index, Expr):
            index = self.whole_number(index, node.slice, "an index into a Python container")
        if isinstance(owner, Expr) or not hasattr(owner, "__getitem__"):
            raise self.fail("T2C246", f"{self._quoted(node.value)} cannot be indexed", node.value)
        try:
            return owner[index]
        except (LookupError, TypeError, ValueError) as error:
            if not self.exact:
                return Unknown(f"it fails: {error}", self.span(node))
            raise self.fail("T2C112", f"this fails at build time: {error!r}", node) from None

    def _eval_Slice(self, node: ast.Slice) -> Value:
        parts = (
            self.evaluate(part) if part else None for part in (node.lower, node.upper, node.step)
        )
        values = [number(part) if isinstance(part, Expr) else part for part in parts]
        return slice(*values)

    def language_subscript(self, owner: LanguageName, node: ast.Subscript) -> Value:
        raise NotImplementedError

    def read(self, access: Access, node: ast.AST | None) -> Expr:
        """The element of `access`; it is an address too, for statements that take tiles."""
        args = (access.buffer.expr(), *(piece.lo for piece in access.pieces))
        expr = ex.compound(
            "index", "", args, self.span(node), dtype=access.buffer.dtype, device=True
        )
        return replace(expr, access=access)

    def access(self, buffer: Buffer, node: ast.Subscript) -> Access:
        """`buffer[...]`, one piece a dimension, slices with their extents."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        values: list[tuple[Value, ast.expr | None]] = []
        for part in parts:
            if isinstance(part, ast.Slice):
                values.append((part, part))
                continue
            value = self.evaluate(part.value if isinstance(part, ast.Starred) else part)
            if isinstance(value, tuple | list):
                values += [(inner, None) for inner in value]
            else:
                values.append((value, part))
        rank = len(buffer.shape)
        if buffer.scope == "var" and len(values) == 1:
            return Access(buffer, (), self.span(node))
        if len(values) == 1 and values[0][0] is Ellipsis:
            values = [(slice(None), None)] * rank
        if len(values) != rank:
            raise self.fail(
                "T2C232",
                f"{buffer.name} has {rank} dimension{'s' * (rank != 1)} "
                f"({', '.join(ex.text(dim) for dim in buffer.shape)}) but gets {len(values)} "
                f"ind{'ex' if len(values) == 1 else 'ices'}",
                node,
                help=f"{buffer.name}[{', '.join('ijklmnop'[:rank])}]",
            )
        pieces = [self._piece(buffer, dim, value, at) for dim, (value, at) in enumerate(values)]
        return Access(buffer, tuple(pieces), self.span(node))

    def _piece(self, buffer: Buffer, dim: int, value: Value, node: ast.expr | None) -> Piece:
        span = self.span(node)
        if isinstance(value, ast.Slice):
            return self._slice_piece(buffer, dim, value)
        if isinstance(value, slice):
            if (value.start, value.stop, value.step) == (None, None, None):
                return Piece(ex.literal(0), buffer.shape[dim], span)
            lo, hi = value.start or 0, value.stop
            lo_expr = self.expression(lo, None)
            hi_expr = buffer.shape[dim] if hi is None else self.expression(hi, None)
            return Piece(lo_expr, extent_of(lo_expr, hi_expr, {}), span)
        if isinstance(value, Region | Buffer) and not is_variable(value):
            raise self.fail("T2C246", "an index is a number, not a buffer", node)
        if isinstance(value, str | float):
            raise self.fail("T2C246", f"an index is a whole number, not {value!r}", node)
        index = self.expression(value, node)
        known = number(index)
        if known is not None and known < 0:  # provably negative: it wraps
            index = ex.binary("+", buffer.shape[dim], index, span)
            if (total := number(index)) is not None:
                index = ex.literal(total, span)
        return Piece(index, None, span)

    def _slice_piece(self, buffer: Buffer, dim: int, node: ast.Slice) -> Piece:
        span = self.span(node)
        if node.step is not None and self.evaluate(node.step) != 1:
            raise self.fail("T2C214", "a region of a buffer has step 1", node.step)
        shape = buffer.shape[dim]
        lo = self.expression(self.evaluate(node.lower), node.lower) if node.lower else ex.literal(0)
        hi = self.expression(self.evaluate(node.upper), node.upper) if node.upper else shape
        known = number(hi)
        if node.upper is not None and known is not None and known < 0:
            hi = ex.binary("+", shape, hi, span)
        if ex.is_zero(lo):
            return Piece(lo, hi.at(span), span)
        return Piece(lo, extent_of(lo, hi, {}), span)

    # -- calls and attributes, by heirs ----------------------------------------------------------

    def iterate(self, value: Value, node: ast.AST) -> Iterator[Value]:
        raise NotImplementedError

    @contextmanager
    def inside(self, frame: Frame) -> Iterator[None]:
        """Evaluates in another frame for a while."""
        outer, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = outer


def is_variable(value: Value) -> bool:
    """An `alloc_var`: reads like a number."""
    return isinstance(value, Buffer) and value.scope == "var"


def describe(value: Value) -> str:
    """A host value for a message."""
    match value:
        case DType():
            return value.name
        case Foreign() | LanguageName():
            return value.path
        case Buffer():
            return value.name
        case bool() | int() | float() | str() | None:
            return repr(value) if len(repr(value)) < 60 else f"{repr(value)[:57]}..."
        case _:
            return f"a {type(value).__name__}"
