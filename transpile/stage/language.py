"""Calls of the language's own names: one table from a name to what handles it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any

from tile2c.transpile.record import record
from tile2c.transpile.stage import (
    allocations,
    language_values,
    launch,
    loops,
    stored_layouts,
    thread_reductions,
    tile_statements,
    tuning,
)
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Access, Buffer, Region
from tile2c.transpile.stage.calls import Call
from tile2c.transpile.stage.defines import Defines, Dynamic
from tile2c.transpile.stage.definitions import Flow
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.invoke import Argument
from tile2c.transpile.stage.library import sparse_factor
from tile2c.transpile.stage.program import is_eager
from tile2c.transpile.stage.spelling import RESERVED
from tile2c.transpile.stage.trace import Tracer
from tile2c.transpile.stage.trace_values import Context, Loop, Reference
from tile2c.transpile.stage.values import (
    BoundMethod,
    Cell,
    Closure,
    HostFunction,
    JitFunction,
    LanguageName,
    MacroFunction,
    Missing,
    Poison,
    Poisoned,
    PrimFunc,
    Scope,
    ThreadReducer,
    Unknown,
    Value,
)
from tile2c.transpile.stage.vocabulary import REFUSED, RENAMED

Handler = Callable[[Call], Value]
HANDLERS: dict[str, Handler] = {
    **language_values.HANDLERS,
    **allocations.HANDLERS,
    **tile_statements.HANDLERS,
    **loops.HANDLERS,
    **launch.HANDLERS,
    **thread_reductions.HANDLERS,
}


@record(frozen=False)
class Language(Tracer):
    """The whole evaluator: host code, device code and the language."""

    defines: Defines = field(default_factory=Defines)
    kernel_names: frozenset[str] = frozenset()  # by which `-D KERNEL.NAME` may mean this kernel
    declared_sizes: dict[str, str] = field(default_factory=dict)  # name to dtype, all of them
    dynamic_sizes: set[str] = field(default_factory=set)  # declared by T.dynamic
    created: list[PrimFunc | JitFunction] = field(default_factory=list)
    thread_reducer: ThreadReducer | None = None  # of the `T.attr` around
    threads: tuple[int, int, int] = (1, 1, 1)  # of the launch
    stored: list[Buffer] = field(default_factory=list)  # tensors whose layout this launch gives

    @property
    def size_names(self) -> frozenset[str]:
        return frozenset(self.declared_sizes)

    def declare_size(self, name: str, dtype: str, node: ast.AST, *, dynamic: bool) -> Value:
        """A size: a number where `-D` fixes it, else a run-time size."""
        fixed = self.defines.find(name, self.kernel_names)
        if not isinstance(fixed, Dynamic | Missing):
            return fixed
        if name in RESERVED:
            name += "_size"
        self.declared_sizes.setdefault(name, dtype)
        if dynamic:
            self.dynamic_sizes.add(name)
        return ex.size(name, self.span(node), dtype)

    def _eval_Name(self, node: ast.Name) -> Value:
        value = Tracer._eval_Name(self, node)
        return self.read(value.access, node) if isinstance(value, Reference) else value

    # -- calls -----------------------------------------------------------------------------------

    def call_language(self, path: str, node: ast.Call) -> Value:
        hint = self.hint
        if any(not isinstance(arg, ast.Constant) for arg in node.args):
            self.hint = None
        try:
            args, keywords = self.arguments(node)
        except Poisoned:  # the stored value was reported; so is this old spelling
            if path != "store" or len(node.args) != 3:
                raise
            args = [Argument(self.evaluate(arg), arg) for arg in node.args[:2]]
            args, keywords = [*args, Argument(Poison(), node.args[2])], {}
        finally:
            self.hint = hint
        return self._dispatch(Call(self, RENAMED.get(path, path), node, args, keywords))

    def call_language_values(
        self, path: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        nodes: list[ast.expr | None] = [None] * len(args)
        if isinstance(node, ast.Call) and len(node.args) == len(args):
            nodes = [None if isinstance(arg, ast.Starred) else arg for arg in node.args]
        arguments = [Argument(value, at) for value, at in zip(args, nodes, strict=True)]
        keywords = {key: Argument(value, None) for key, value in kwargs.items()}
        return self._dispatch(Call(self, RENAMED.get(path, path), node, arguments, keywords))

    def call_values(self, path: str, args: list[Argument], node: ast.AST) -> Value:
        """A language call that another one stands for."""
        return self._dispatch(Call(self, path, node, args, {}))

    def _dispatch(self, call: Call) -> Value:
        head = call.path.split(".")[0]
        if head in REFUSED:
            raise self.fail("T2C231", f"T.{call.path} is not available: {REFUSED[head]}", call.node)
        if call.path in ("prim_func", "macro", "inline", "meta_class"):
            return self._decorator(call)
        if isinstance(dtype := self.as_dtype(call.path), str) and call.path not in HANDLERS:
            return language_values.convert(call, dtype)
        handler = HANDLERS.get(call.path)
        if handler is None:
            if not self.exact or not self.tracing:
                return Unknown(f"T.{call.path}() is not evaluated", self.span(call.node))
            raise self.fail("T2C231", f"T.{call.path} is not supported yet", call.node)
        return handler(call)

    def _decorator(self, call: Call) -> Value:
        function = call.args[0].value if call.args else None
        if not isinstance(function, Closure):
            return LanguageName(call.path) if function is None else function
        if call.path == "prim_func":
            made = PrimFunc(replace(function, scope=_as_it_is(function.scope)))
            self.created.append(made)
            return made
        return MacroFunction(function)

    def language_subscript(self, owner: LanguageName, node: ast.Subscript) -> Value:
        """`T.Tensor[[M, N], dtype]`."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        args = [Argument(self.evaluate(part), part) for part in parts]
        return self._dispatch(Call(self, owner.path, node, args, {}))

    def call_jit(
        self, function: JitFunction, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if isinstance(function.inner, Closure):
            if not self.tracing and is_eager(self, function.inner):
                return Unknown("a kernel's result", self.span(node))
            return self.call_closure(function.inner, args, kwargs, node)
        return function.inner

    def call_tool(
        self, path: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """`tilelang.jit`, `autotune`, `compile` and the rest of the package."""
        name = path.rpartition(".")[2]
        if (answer := self.device.answer(f"tilelang.{path}", self.span(node))) is not None:
            return answer
        function = args[0] if args else kwargs.get("func")
        if name in ("jit", "lazy_jit"):
            if isinstance(function, Closure | PrimFunc):
                compiled = JitFunction(function)
                if isinstance(function, Closure) and not self.tracing:
                    self.created.append(compiled)
                return compiled
            return HostFunction(name, lambda ev, inner, _, at: self.call_tool("jit", inner, {}, at))
        if name == "from_kernel" and (tuned := tuning.tuner(args, kwargs)) is not None:
            self.created.append(tuned)
            return tuned
        if name == "autotune":
            configs = kwargs.get("configs", function)
            if isinstance(function, JitFunction | Closure):
                return function
            return HostFunction(name, lambda ev, inner, _, at: _with_configs(inner[0], configs))
        if name in ("get_e_factor", "get_e_replicate_factor"):
            factor = sparse_factor(name, *(self.as_dtype(value) for value in args[:2]))
            if factor is not None:
                return factor
        if name in ("compile", "lower") and isinstance(function, PrimFunc):
            return function
        return Unknown(f"tilelang.{path}() is not evaluated", self.span(node))

    def device_method(
        self, method: BoundMethod, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """`x.astype(dtype)`, `buffer.access_ptr("r")`."""
        owner, nodes = method.owner, node.args if isinstance(node, ast.Call) else []
        at = (
            node.func.value
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            else None
        )
        receiver = Argument(owner, at)
        rest = [
            Argument(v, nodes[i] if len(nodes) == len(args) else None) for i, v in enumerate(args)
        ]
        keywords = {key: Argument(value, None) for key, value in kwargs.items()}
        if method.name == "astype":
            return self._dispatch(Call(self, "cast", node, [receiver, *rest], keywords))
        if method.name == "access_ptr":
            return self._dispatch(Call(self, "access_ptr", node, [receiver, *rest], keywords))
        raise self.fail("T2C242", f"the method {method.name} is not part of the language", node)

    def iterate(self, value: Value, node: ast.AST) -> Iterator[Value]:
        if isinstance(value, Loop):
            raise self.fail(
                "T2C215",
                f"{self.frame.function or 'this code'} runs when the kernel is built; a loop of "
                "the kernel in it needs a macro",
                node,
                help=f"@T.macro above def {self.frame.function}" if self.frame.function else None,
            )
        return Tracer.iterate(self, value, node)

    # -- accesses --------------------------------------------------------------------------------

    def access(self, buffer: Buffer, node: ast.Subscript) -> Access:
        buffer.used_in = self.launches
        return Tracer.access(self, buffer, node)

    def element_args(self, access: Access) -> tuple[Expr, ...]:
        return stored_layouts.element(self, access)

    # -- statements ------------------------------------------------------------------------------

    def store_region(
        self, access: Access, value: Value, node: ast.expr | None, target: ast.expr
    ) -> None:
        destination = Argument(Region(access), target)
        source = Argument(value, node)
        tile = isinstance(value, Region) or (isinstance(value, Buffer) and value.scope != "var")
        path = "copy" if tile else "fill"
        arguments = [source, destination] if tile else [destination, source]
        self._dispatch(Call(self, path, target, arguments, {}))

    def trace_loop(self, node: ast.For, loop: Loop) -> None:
        loops.trace_loop(self, node, loop)

    def trace_context(self, node: ast.With, context: Context) -> Flow:
        return launch.trace_context(self, node, context)

    def with_kernel(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return launch.with_kernel(self, body)


def _as_it_is(scope: Scope) -> Scope:
    """The names around a prim_func as they are now: it is built where it is defined. What is only
    defined later is found too."""
    cells: dict[str, Cell] = {}
    level: Scope | None = scope
    while level is not None and level.parent is not None:
        cells = {**level.cells, **cells}
        level = level.parent
    return Scope(scope, cells) if cells else scope


def _with_configs(function: Any, configs: Value) -> Value:
    if isinstance(function, JitFunction):
        function.configs = configs
    return function
