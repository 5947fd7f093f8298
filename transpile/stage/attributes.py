"""Names and attributes: builtins, the language, known modules, objects of the program."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.record import record
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage import host_functions, library
from tile2c.transpile.stage.buffers import Buffer
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.host_arithmetic import MOST_ITEMS
from tile2c.transpile.stage.state import describe
from tile2c.transpile.stage.subscripts import Subscripts
from tile2c.transpile.stage.values import (
    BoundMethod,
    Closure,
    Decorated,
    DType,
    Foreign,
    HostClass,
    HostFunction,
    HostTensor,
    Instance,
    JitFunction,
    LanguageName,
    MacroFunction,
    PrimFunc,
    Scope,
    ToolName,
    Unknown,
    Value,
)
from tile2c.transpile.stage.vocabulary import KNOWN, SCALAR_DTYPES, dtype_name, nearest

_FRAMEWORKS = ("torch", "numpy", "np", "jax", "ml_dtypes", "cupy")
# What others call the types: fp16, f32, bf16, i8, u32.
_FAMILIES = {"fp": "float", "f": "float", "bf": "bfloat", "i": "int", "s": "int", "u": "uint"}
_BITS = re.compile(r"(fp|f|bf|i|s|u)(\d+)")


@record(frozen=False)
class Attributes(Subscripts):
    """Adds names and attributes to the evaluator."""

    main_guard: bool = False  # whether `__name__ == "__main__"`

    def global_name(self, node: ast.Name) -> Value:
        found = self.builtin(node.id)
        if found is not None:
            return found
        if node.id == "__name__":
            return "__main__" if self.main_guard else self.frame.source.stem
        if node.id == "__file__":
            return self.frame.source.name
        if not self.exact:
            return Unknown(f"{node.id} is not defined", self.span(node))
        if hasattr(builtins, node.id):
            raise self.fail(
                "T2C110",
                f"{node.id} of Python is not evaluated: the program is read, not run",
                node,
                help="pass the value as a parameter of the factory and fix it with -D NAME=VALUE",
            )
        scope: Scope | None = self.frame.scope
        names: set[str] = set()
        while scope is not None:
            names |= set(scope.cells)
            scope = scope.parent
        near = nearest(node.id, names)
        raise self.fail(
            "T2C111",
            f"{node.id} is not defined",
            node,
            help=f"did you mean {near}?" if near else None,
        )

    def builtin(self, name: str) -> HostFunction | None:
        """Python's builtin of that name, as far as the evaluator has it."""
        if name not in host_functions.BUILTINS:
            return None
        return HostFunction(
            name,
            lambda ev, args, kwargs, node: host_functions.call_builtin(
                ev, name, args, kwargs, node
            ),
        )

    def as_dtype(self, value: Value) -> str | None:
        """The element type that a value names: `T.float16`, "float16", torch.float16, float."""
        match value:
            case LanguageName(path="ptr"):
                return "handle"
            case str():
                return dtype_name(value)
            case HostFunction() if value.name in ("int", "float", "bool"):
                return dtype_name(value.name)
            case _:
                return None

    def dtype(self, value: Value, node: ast.AST | None) -> str:
        """As `as_dtype`; an error for what names no type."""
        found = self.as_dtype(self.known(value, node, "an element type"))
        self.need_decided(value, node, "an element type")
        if found is None:
            message = f"{describe(value)} is not an element type"
            error = self.fail("T2C211", message, node, help=self._element_types(value))
            if not isinstance(value, str) or _spelled(value, node):
                raise error
            # A name holds it: whatever else asks for that name is told nothing new.
            raise InputError(self.wrong_types.setdefault(value, error.diagnostic))
        return found

    def _element_types(self, value: Value) -> str | None:
        """The type that is meant, else all of them, but those once in a run."""
        near = None
        if isinstance(value, str):
            bits = _BITS.fullmatch(value.lower())
            meant = value.lower() if bits is None else f"{_FAMILIES[bits[1]]}{bits[2]}"
            kinds = [name for name in SCALAR_DTYPES if name.startswith(f"{meant}_")]  # of float8
            kinds.sort(key=lambda name: not name.endswith("fn"))  # those that most chips have
            near = meant if meant in SCALAR_DTYPES else next(iter(kinds), None)
            near = near or nearest(value, SCALAR_DTYPES)
        if near is not None:
            return f"did you mean {near}?"
        listed = f"element types: {', '.join(name for name in SCALAR_DTYPES if name != 'handle')}"
        return None if any(item.help == listed for item in self.diagnostics.items) else listed

    def iterate(self, value: Value, node: ast.AST) -> Iterator[Value]:
        """The items of a host container, counted against the fuel."""
        value = self.known(value, node, "this loop")
        if isinstance(value, HostClass):
            value = [cell.value for cell in value.scope.cells.values()]
        self.need_decided(value, node, "a loop at build time")
        if isinstance(value, Expr) or not hasattr(value, "__iter__"):
            shown = ex.text(value) if isinstance(value, Expr) else describe(value)
            raise self.fail(
                "T2C215",
                f"{shown} cannot be iterated at build time",
                node,
                help="for i in T.serial(n):" if self.tracing else None,
            )
        for count, item in enumerate(list(value) if isinstance(value, dict | set) else value):
            self.burn(node)
            if count > MOST_ITEMS:
                raise self.fail("T2C114", "this iterates over too many items", node)
            yield item

    # -- attributes ------------------------------------------------------------------------------

    def _eval_Attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.evaluate(node.value), node.attr, node)

    def attribute(
        self, owner: Value, name: str, node: ast.AST, default: list[Value] | None = None
    ) -> Value:
        """`owner.name`; `default` holds the value to give where there is none."""
        match owner:
            case LanguageName():
                return self.language_name(owner, name, node)
            case ToolName():
                return self._tool_name(owner, name)
            case Foreign():
                path = f"{owner.path}.{name}"
                root = owner.path.split(".")[0]
                if root in _FRAMEWORKS and (known := dtype_name(name)) is not None:
                    return DType(known)
                fact = self.device.fact(path)
                return library.LIBRARY_VALUES.get(path, Foreign(path)) if fact is ... else fact
            case Unknown():
                return owner
            case Buffer():
                return self._buffer_attribute(owner, name, node)
            case HostTensor():
                return self._tensor_attribute(owner, name, node)
            case Instance():
                return self._instance_attribute(owner, name, node, default)
            case HostClass():
                cell = owner.scope.cells.get(name)
                if cell is not None and isinstance(cell.value, Decorated):
                    function = cell.value.function
                    bound = cell.value.kind == "classmethod"
                    return self.bind_self(function, owner, node) if bound else function
                if cell is not None:
                    return cell.value
                return Unknown(f"{owner.name} has no {name}", self.span(node))
            case DType():
                return self._dtype_attribute(owner, name, node)
            case Closure() | JitFunction() | PrimFunc() | MacroFunction():
                return BoundMethod(owner, name)
            case Expr():
                if name == "dtype" and owner.dtype is not None:
                    return DType(owner.dtype)
                if name != "astype":
                    self.need_decided(owner, node, f"its attribute {name}")
                return BoundMethod(owner, name)
            case HostFunction():
                return Unknown(f"{owner.name}.{name} is not evaluated", self.span(node))
        owner = self.known(owner, node, f"its attribute {name}")
        for kind, methods in host_functions.METHODS.items():
            if isinstance(owner, kind) and name in methods:
                return BoundMethod(owner, name)
        if default:
            return default[0]
        return Unknown(f"the attribute {name} is not evaluated", self.span(node))

    def language_name(self, owner: LanguageName, name: str, node: ast.AST) -> Value:
        """`T.name`: a dtype, or a name of the language; an unknown one is an error."""
        if owner.path:
            return LanguageName(f"{owner.path}.{name}")
        if name == "fp8":  # a module of helpers
            return LanguageName(name)
        known = dtype_name(name)
        if known is not None:
            return DType(known)
        if name not in KNOWN and not name.startswith("tvm_"):
            if not self.exact:
                return Unknown(f"T.{name} is not known", self.span(node))
            near = nearest(name, KNOWN)
            raise self.fail(
                "T2C202",
                f"{name} is not a name of the tile language",
                node,
                help=f"did you mean T.{near}?" if near else None,
            )
        return LanguageName(name)

    def _tool_name(self, owner: ToolName, name: str) -> Value:
        path = f"{owner.path}.{name}" if owner.path else name
        if path == "language":
            return LanguageName("")
        if path in ("next_power_of_2", "math.next_power_of_2"):
            return LanguageName("next_power_of_2")
        if path in ("cdiv", "math.cdiv", "math.ceildiv"):
            return LanguageName("ceildiv")
        return ToolName(path)

    def _buffer_attribute(self, owner: Buffer, name: str, node: ast.AST) -> Value:
        match name:
            case "shape":
                return tuple(dim.value if dim.kind == "literal" else dim for dim in owner.shape)
            case "dtype":
                return DType(owner.dtype)
            case "name":
                return owner.name
            case "ndim":
                return len(owner.shape)
            case "data":
                return self.call_language_values("access_ptr", [owner], {}, node)
            case "access_ptr" | "astype" | "scope" | "vload" | "vstore":
                return owner.scope if name == "scope" else BoundMethod(owner, name)
            case _:
                raise self.fail("T2C242", f"a buffer has no attribute {name}", node)

    def _tensor_attribute(self, owner: HostTensor, name: str, node: ast.AST) -> Value:
        if name in ("shape", "dtype", "ndim"):
            return {"shape": owner.shape, "dtype": owner.dtype, "ndim": len(owner.shape)}[name]
        if name in ("cuda", "contiguous", "to", "half", "float", "bfloat16", "clone", "normal_"):
            return HostFunction(name, lambda ev, args, kwargs, at: owner)
        if name in ("size",):
            return HostFunction(
                name, lambda ev, args, kwargs, at: owner.shape[args[0]] if args else owner.shape
            )
        return Unknown(f"a tensor's {name} is not evaluated", self.span(node))

    def _dtype_attribute(self, owner: DType, name: str, node: ast.AST) -> Value:
        digits = "".join(c for c in owner.name.split("x")[0].split("_")[0] if c.isdigit())
        bits = 8 if owner.name == "bool" else int(digits or 0)
        if name in ("bits", "itemsize", "bytes"):
            return bits if name == "bits" else -(-bits // 8)
        if name in host_functions.METHODS[str]:
            return BoundMethod(owner, name)
        return Unknown(f"the attribute {name} of an element type is not evaluated", self.span(node))

    def _instance_attribute(
        self, owner: Instance, name: str, node: ast.AST, default: list[Value] | None
    ) -> Value:
        if name in owner.attributes:
            return owner.attributes[name]
        cls: Value = owner.cls
        while isinstance(cls, HostClass):
            cell = cls.scope.cells.get(name)
            if cell is not None:
                return self.bind_self(cell.value, owner, node)
            cls = next((base for base in cls.bases if isinstance(base, HostClass)), None)
        if default:
            return default[0]
        return Unknown(f"the attribute {name} is not evaluated", self.span(node))

    def bind_self(self, value: Value, owner: Value, at: ast.AST) -> Value:
        """A function of a class as a method of `owner`."""
        match value:
            case Closure():
                return Closure(
                    value.node, value.scope, value.source, value.name, value.defaults, value.path,
                    owner, value.arguments,
                )  # fmt: skip
            case JitFunction(inner=Closure() as inner):
                return JitFunction(self.bind_self(inner, owner, at), value.configs)
            case MacroFunction():
                return MacroFunction(self.bind_self(value.closure, owner, at))
            case Decorated(kind="property"):
                method = self.bind_self(value.function, owner, at)
                return self.invoke(method, [], {}, at)
            case Decorated(kind="classmethod"):
                return self.bind_self(value.function, owner.cls, at)
            case Decorated():
                return value.function
            case _:
                return value

    # -- by heirs --------------------------------------------------------------------------------

    def call_language_values(
        self, path: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """A language call that an attribute stands for."""
        raise NotImplementedError

    def invoke(
        self, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """Calls a value of any kind at build time."""
        raise NotImplementedError


def _spelled(value: str, node: ast.AST | None) -> bool:
    """Whether the text stands in the program at this place."""
    inside = () if node is None else ast.walk(node)
    return any(isinstance(part, ast.Constant) and part.value == value for part in inside)
