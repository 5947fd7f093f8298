"""Kernels in normal form from text, as the front end would hand them over."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from tile2c.transpile.diagnostics import Diagnostics, Span
from tile2c.transpile.ir.build import build
from tile2c.transpile.ir.forms import Function

PLACED = (cst.BaseExpression, cst.BaseStatement, cst.BaseSmallStatement, cst.Param)
HEAD = "import tilelang.language as T\n\n"


@dataclass(frozen=True)
class Origin:
    span: Span
    quote: str = ""
    expanded_from: tuple[Span, ...] = ()


@dataclass(frozen=True)
class NormalKernel:
    name: str
    module: cst.Module
    origins: Mapping[cst.CSTNode, Origin]
    promises: Mapping[str, int] = field(default_factory=dict)
    passed: tuple[str, ...] = ()
    summary: str = ""
    docstring: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.module.code


def normal(text: str, *, promises: Mapping[str, int] | None = None) -> NormalKernel:
    """The last function of a module in normal form; every node knows its place."""
    wrapper = MetadataWrapper(cst.parse_module(HEAD + textwrap.dedent(text)), unsafe_skip_copy=True)
    origins = {
        node: Origin(Span("kernel.py", at.start.line, at.start.column, at.end.line, at.end.column))
        for node, at in wrapper.resolve(PositionProvider).items()
        if isinstance(
            node, (cst.BaseExpression, cst.BaseStatement, cst.BaseSmallStatement, cst.Param)
        )
    }
    functions = [node for node in wrapper.module.body if isinstance(node, cst.FunctionDef)]
    name = functions[-1].name.value
    return NormalKernel(name, wrapper.module, origins, promises or {})


def built(text: str, *, promises: Mapping[str, int] | None = None) -> Function:
    """The IR of a kernel that has no errors."""
    diagnostics = Diagnostics()
    function = build(normal(text, promises=promises), diagnostics)
    problems = [f"{item.code} {item.message} {item.span}" for item in diagnostics.items]
    assert function is not None, problems
    return function


def problems(text: str) -> list[str]:
    """`CODE line:column message` of everything found, warnings too. Lines count within `text`."""
    diagnostics = Diagnostics()
    build(normal(text), diagnostics)
    offset = HEAD.count("\n")
    return [
        f"{item.code} {item.span.line - offset}:{item.span.col + 1} {item.message}"
        if item.span is not None
        else f"{item.code} {item.message}"
        for item in diagnostics.items
    ]


def body(text: str, params: str = "A: T.Tensor((64,), T.float32)", threads: int = 32) -> str:
    """A kernel of one block around some statements."""
    lines = textwrap.indent(textwrap.dedent(text).strip("\n"), " " * 8)
    kernel = f"    with T.Kernel(1, threads={threads}) as bx:"
    return f"@T.prim_func\ndef kernel({params}):\n{kernel}\n{lines}\n"
