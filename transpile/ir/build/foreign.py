"""Foreign code: the program's own C text and calls of its functions (language.md 17)."""

from __future__ import annotations

import re
from typing import Literal, cast

import libcst as cst
from tile2c.transpile.ir.build import conversions
from tile2c.transpile.ir.build.arguments import Arguments, language_name, type_of
from tile2c.transpile.ir.build.context import Builder, Value
from tile2c.transpile.ir.build.elements import element, named_buffer
from tile2c.transpile.ir.build.expressions import expression
from tile2c.transpile.ir.build.regions import is_region
from tile2c.transpile.ir.dtypes import DTYPES, INT32, DType
from tile2c.transpile.ir.expr import Buffer, Call, Expr, const
from tile2c.transpile.ir.forms import Foreign, Pointer, Stmt

CALLS = ("call_extern", "call_pure_extern")
STATEMENTS = (*CALLS, "import_source")
_NAME = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*(<[\w, ]*>)?")


def build_statement(b: Builder, node: cst.Call, name: str) -> list[Stmt]:
    """`T.import_source(text)`, or `T.call_extern("handle", "name", ...)` for its effect."""
    if name == "import_source":
        args = Arguments(b, node, "T.import_source")
        text = args.text("source", 0, "")
        args.finish()
        add_source(b, text)
        return []
    _, function, nodes = _parts(b, node)
    return [Foreign(name=function, args=tuple(_argument(b, arg) for arg in nodes))]


def add_source(b: Builder, text: str) -> None:
    """C text of the program goes in front of the kernel once."""
    if text.strip():
        b.sources.append(text)


def build_call(b: Builder, node: cst.Call) -> Value:
    """`T.call_extern(dtype, "name", ...)` as a value: a function of numbers alone."""
    dtype, function, nodes = _parts(b, node)
    if dtype is None:
        b.fail("T2C231", f"{function} gives no value: its type is handle", node)
    args: list[Expr] = []
    for arg in nodes:
        found = _argument(b, arg)
        if isinstance(found, Pointer):
            b.fail(
                "T2C231",
                f"{function} takes an address, and its value is asked for",
                arg,
                help="call it as a statement, and let it write its result through a pointer",
            )
        args.append(found)
    call = Call(dtype=dtype, function=f"extern {function}", args=tuple(args), span=b.span(node))
    return Value(call)


def _parts(b: Builder, node: cst.Call) -> tuple[DType | None, str, list[cst.BaseExpression]]:
    """Type of the value (None for handle), name of the function, and what it is given."""
    args = Arguments(b, node, "T.call_extern")
    by_name = args.keywords.pop("dtype", None)
    given = list(args.positional)
    type_node = by_name if by_name is not None else given.pop(0) if given else node
    name = given.pop(0) if given else node
    args.taken = len(args.positional)
    args.finish()
    if not isinstance(name, cst.SimpleString):
        b.fail("T2C242", "T.call_extern needs the function's name, a string", name)
    function = str(name.evaluated_value)
    if not _NAME.fullmatch(function):
        b.fail("T2C242", f"{function!r} is no name of a C function", name)
    return _type(b, type_node), function, given


def _type(b: Builder, node: cst.CSTNode) -> DType | None:
    if isinstance(node, cst.SimpleString):
        word = str(node.evaluated_value)
        found = DTYPES.get(word)
    else:
        assert isinstance(node, cst.BaseExpression)
        word, found = b.kernel.module.code_for_node(node), type_of(node)
    if word in ("handle", "T.handle", "void"):
        return None
    if found is None:
        b.fail("T2C242", f"{word} is no type of a value", node)
    return found


def _argument(b: Builder, node: cst.BaseExpression) -> Expr | Pointer:
    if isinstance(node, cst.Call) and language_name(node.func) in ("address_of", "access_ptr"):
        args = Arguments(b, node, f"T.{language_name(node.func)}")
        place = args.node_of("buffer", 0)
        access = args.text("access_type", 1, "rw")
        args.finish()
        if access not in ("r", "w", "rw"):
            b.fail("T2C242", f'{access!r} is no access: "r", "w" and "rw" are', node)
        return _pointer(b, place, cast(Literal["r", "w", "rw"], access))
    if is_region(b, node):
        return _pointer(b, node, "rw")
    return conversions.settle(b, expression(b, node), node)


def _pointer(b: Builder, node: cst.BaseExpression, access: Literal["r", "w", "rw"]) -> Pointer:
    if isinstance(node, cst.Subscript) and not is_region(b, node):
        place = element(b, node)
        buffer, index = place.buffer, place.index
    else:
        buffer = named_buffer(b, node)
        index = tuple(const(0, dtype=INT32) for _ in buffer.shape)
    _check_memory(b, buffer, node)
    return Pointer(buffer=buffer, index=index, access=access)


def _check_memory(b: Builder, buffer: Buffer, node: cst.CSTNode) -> None:
    """Layout of tiles is the compiler's business, so foreign code is given none of them."""
    if buffer.name in b.tile_views:
        b.fail("T2C231", f"{buffer.name} is a view: foreign code is given its base", node)
    if buffer.scope in ("local", "variable", "global"):
        return
    b.fail(
        "T2C231",
        f"{buffer.name} is a {buffer.scope} tile, whose elements lie as the target likes: foreign code "
        "is given private arrays and tensors",
        node,
        help=f"copy the elements to an array of the thread, T.alloc_local((n,), T.{buffer.dtype})",
    )
