"""From a source file to the normal form of each of its kernels."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.read import Source
from tile2c.transpile.record import record
from tile2c.transpile.stage.defines import Defines, NamesMet
from tile2c.transpile.stage.making import Result, deep_stack, make_all
from tile2c.transpile.stage.origins import Origin
from tile2c.transpile.stage.values import NotReady, Value

if TYPE_CHECKING:
    import libcst as cst
    from tile2c.transpile.stage.specialise import Made, Root


@dataclass(frozen=True)
class NormalKernel:
    """One kernel and specialisation in normal form, with where each piece came from."""

    name: str  # the output's KERNEL name, and the function's in `module`
    function: str  # the author's name of the prim_func or eager function
    module: cst.Module
    origins: Mapping[cst.CSTNode, Origin]
    parameters: Mapping[str, Value]  # compile-time values that were fixed
    sizes: tuple[str, ...]
    promises: Mapping[str, int]  # size to divisor, from `-D M%16=0`
    variant: int  # which of the run's sets of `-D` values made it
    source_file: str
    source_line: int
    source_sha256: str
    docstring: tuple[str, ...]  # what the kernel's text says of itself; comments above are not
    passed: tuple[str, ...] = ()  # sizes in no tensor's shape: arguments behind the author's
    licence: tuple[str, ...] = ()  # lines of C++ comment that go on top of the text

    @property
    def summary(self) -> str:
        """The docstring's first line."""
        return next((line.strip() for line in self.docstring if line.strip()), "")

    @cached_property
    def text(self) -> str:
        """The normal form as Python text."""
        return self.module.code


@record
class KernelListing:
    """What `--list` says about a kernel."""

    name: str
    file: str
    line: int
    style: str
    parameters: Mapping[str, Value]  # name to default, None where there is none
    sizes: tuple[str, ...]
    ready: bool | str  # True, or why it needs a -D


def normalize(
    source: Source,
    defines: Defines | Sequence[Defines],
    only: Sequence[str],
    diagnostics: Diagnostics,
    met: NamesMet | None = None,
) -> tuple[NormalKernel, ...]:
    """The kernels of a file, or those named in `only`; each set of `defines` makes its own.

    Problems go to `diagnostics`. Raises UnknownName for a `-D` or `--kernel` name that the file
    does not have; with `met`, names are only noted there, for a check over all files of a run.
    """
    variants = (defines,) if isinstance(defines, Defines) else tuple(defines)
    with deep_stack():
        results = make_all(source, variants, diagnostics)
        kernels, refusals = _named(source, variants, results)
    _check_names(source, variants, only, kernels, refusals, results, met)
    wanted = [kernel for kernel in kernels if not only or kernel.name in only]
    failed = [(name, why) for name, why in refusals if not only or name in only]
    blamed: set[tuple[tuple[str, ...], int]] = set()
    for result in results:
        names = {kernel.name for kernel in kernels if kernel.source_line == _line(result)}
        if result.not_ready is None and not result.made:
            names |= {_root_name(source, result.root), result.root.name, *result.root.kernels}
        told = bool(result.blamed) and (result.blamed, result.variant) in blamed
        if not told and (not only or names & set(only)):
            blamed.add((result.blamed, result.variant))
            for item in result.diagnostics.items:
                diagnostics.add(item)
    for name, why in failed:
        _report_not_ready(name, why, diagnostics, skippable=bool(wanted) and not only)
    if not results and not diagnostics.failed:
        _report_no_kernel(source, diagnostics)
    return tuple(wanted)


def _report_no_kernel(source: Source, diagnostics: Diagnostics) -> None:
    """What is missing: a launch where functions are compiled, else a kernel."""
    from tile2c.transpile.read.reader import whole_file
    from tile2c.transpile.stage.specialise import compiled_functions

    unnamed = _language_without_import(source)
    if unnamed is not None:
        diagnostics.error(
            "T2C111",
            f"{unnamed.id} is not defined",
            source.span(unnamed),
            help=f"import tilelang.language as {unnamed.id}",
        )
        return
    idle = compiled_functions(source)
    for function in idle:
        diagnostics.error(
            "T2C404",
            f"{function.name} is compiled but launches nothing",
            function.source.span(function.node),
            help="put its body into `with T.Kernel(blocks, threads=128) as bx:`",
        )
    if not idle:
        diagnostics.error(
            "T2C118",
            "there is no kernel in this file",
            whole_file(source),
            help="a kernel is a function decorated with @T.prim_func or @tilelang.jit",
        )


def list_kernels(
    source: Source, defines: Defines, diagnostics: Diagnostics, met: NamesMet | None = None
) -> tuple[KernelListing, ...]:
    """One entry for each kernel of the file; those that are not ready say why. `met` as above."""
    with deep_stack():
        results = make_all(source, (defines,), diagnostics)
        kernels, refusals = _named(source, (defines,), results)
    _check_names(source, (defines,), (), kernels, refusals, results, met)
    listings: list[tuple[int, KernelListing]] = []
    for result in results:
        root = result.root
        parameters = {name: _plain(root.defaults.get(name)) for name in root.parameters}
        for kernel in kernels:
            if kernel.source_line == _line(result) or kernel in _kernels_of(result, kernels):
                listings.append((kernel.source_line, _listing(kernel, root, parameters, result)))
        if not result.made:
            failed = _root_name(source, root)
            name = next((n for n, why in refusals if why is result.not_ready), failed)
            problem: bool | str = _first_error(result.diagnostics)
            if result.not_ready is not None:
                problem = _reason(result.not_ready)
            line = root.node.lineno
            listings.append(
                (line, KernelListing(name, source.name, line, root.style, parameters, (), problem))
            )
    unique = {(listing.name, listing.line): listing for _, listing in listings}
    return tuple(unique.values())


def _listing(
    kernel: NormalKernel, root: Root, parameters: Mapping[str, Value], result: Result
) -> KernelListing:
    ready = _first_error(result.diagnostics) if result.diagnostics.failed else True
    return KernelListing(
        kernel.name,
        kernel.source_file,
        kernel.source_line,
        root.style,
        parameters,
        kernel.sizes,
        ready,
    )


def _line(result: Result) -> int | None:
    return result.made[0].traced.closure.node.lineno if result.made else None


def _kernels_of(result: Result, kernels: Sequence[NormalKernel]) -> list[NormalKernel]:
    lines = {made.traced.closure.node.lineno for made in result.made}
    return [kernel for kernel in kernels if kernel.source_line in lines]


def _first_error(diagnostics: Diagnostics) -> bool | str:
    return next((item.message for item in diagnostics.items if item.severity == "error"), True)


def _plain(value: Value) -> Value:
    from tile2c.transpile.stage.specialise import _fixed

    return _fixed({"value": value}).get("value")


def _language_without_import(source: Source) -> ast.Name | None:
    """The `T` of a first `T.prim_func` or `T.Kernel` where the file gives that name to nothing."""
    known: set[str] = set()
    met: list[ast.Name] = []
    for node in ast.walk(source.module):
        match node:
            case ast.alias():
                known.add((node.asname or node.name).partition(".")[0])
            case ast.Name(ctx=ast.Store()):
                known.add(node.id)
            case ast.arg():
                known.add(node.arg)
            case ast.Attribute(attr="prim_func" | "Kernel", value=ast.Name()):
                assert isinstance(node.value, ast.Name)
                met.append(node.value)
            case _:
                pass
    star = "*" in known  # `from tilelang.language import *` may bring it
    met.sort(key=lambda node: (node.lineno, node.col_offset))
    return next((node for node in met if node.id not in known and not star), None)


# -- names ----------------------------------------------------------------------------------------


def _named(
    source: Source, variants: Sequence[Defines], results: Sequence[Result]
) -> tuple[list[NormalKernel], list[tuple[str, NotReady]]]:
    """The kernels under their output names, and those that are not ready under theirs."""
    from tile2c.transpile.stage.assemble import assemble
    from tile2c.transpile.stage.specialise import base_name

    refusals: list[tuple[str, NotReady]] = []
    pending: list[tuple[str, Result, Made]] = []
    for result in results:
        if result.not_ready is not None:
            refusals.append((_root_name(source, result.root), result.not_ready))
        for made in result.made:
            pending.append((base_name(source, made.path, made.function), result, made))
    names = _unique_names(pending)
    kernels: list[NormalKernel] = []
    texts: dict[str, str] = {}
    for name, (_, result, made) in zip(names, pending, strict=True):
        try:
            module, sizes = assemble(made.ev, made.traced, name)
        except NotReady as problem:
            refusals.append((name, problem))
            continue
        if name in texts:  # of a script that makes the same function again with other local values
            if texts[name] == module.code:
                continue
            name = next(f"{name}_{n}" for n in range(2, 10**6) if f"{name}_{n}" not in texts)
            module, sizes = assemble(made.ev, made.traced, name)
        texts[name] = module.code if len(names) > 1 else ""
        defines = variants[result.variant]
        kernel = _kernel(defines, name, made, module, sizes)
        kernels.append(replace(kernel, variant=result.variant))
    return kernels, refusals


def _kernel(
    defines: Defines,
    name: str,
    made: Made,
    module: cst.Module,
    sizes: tuple[str, ...],
) -> NormalKernel:
    closure = made.traced.closure
    fixed = dict(made.parameters)
    names = made.root.kernels | {name}
    return NormalKernel(
        name=name,
        function=made.function,
        module=module,
        origins=made.ev.residual.origins,
        parameters={key: value for key, value in fixed.items() if key not in sizes},
        sizes=sizes,
        promises=defines.promised(sizes, names),
        variant=0,
        source_file=closure.source.name,
        source_line=closure.node.lineno,
        source_sha256=closure.source.sha256,
        docstring=tuple(made.traced.docstring),
        passed=made.traced.passed,
    )


def _root_name(source: Source, root: Root) -> str:
    from tile2c.transpile.stage.specialise import GENERIC, base_name, method_name

    if root.style == "method":
        cls, _, method = root.name.rpartition(".")
        made = method_name(cls, method)
        named = sorted(root.kernels - {root.name, cls, method, made} - GENERIC)
        return named[0] if len(named) == 1 else made
    inner = sorted(root.kernels - {root.name} - GENERIC) or ["main"]
    if root.style == "factory" and len(inner) == 1:
        return base_name(source, (root.name,), inner[0])
    return base_name(source, (), root.name)


def _unique_names(pending: Sequence[tuple[str, Result, Made]]) -> list[str]:
    """Suffixes for specialisations, enclosing functions in front where names still clash."""
    definitions: dict[str, set[int]] = {}
    for base, _, made in pending:
        definitions.setdefault(base, set()).add(made.traced.closure.node.lineno)
    names: list[str] = []
    for base, _, made in pending:
        name = base
        if len(definitions[base]) > 1 and made.path:
            name = "_".join((*(part for part in made.path if part != base), base))
        same = [
            other.parameters | _sizes_of(other)
            for other_base, _, other in pending
            if other_base == base and other.traced.closure.node is made.traced.closure.node
        ]
        names.append(name + _suffix(made.parameters | _sizes_of(made), same))
    return names


def _sizes_of(made: Made) -> dict[str, Value]:
    return dict.fromkeys(made.ev.declared_sizes, "dynamic")


def _suffix(own: Mapping[str, Value], all_: Sequence[Mapping[str, Value]]) -> str:
    if len(all_) < 2:
        return ""
    keys = sorted({key for parameters in all_ for key in parameters})
    parts = []
    for key in keys:
        if len({repr(parameters.get(key)) for parameters in all_}) > 1:
            value = own.get(key)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            shown = re.sub(r"\W", "_", str(value))
            parts.append(f"_{key}{'' if number else '_'}{shown}")
    return "".join(parts)


# -- reports --------------------------------------------------------------------------------------


def _reason(why: NotReady) -> str:
    return f"{why.name} has to be known because {why.why}: -D {why.name}=VALUE"


def _report_not_ready(
    kernel: str, why: NotReady, diagnostics: Diagnostics, *, skippable: bool
) -> None:
    message = f"{why.name} has to be known: {why.why}"
    help = f"-D {why.name}=VALUE"
    if skippable:
        diagnostics.warning("T2C117", f"{kernel} is skipped: {message}", why.span, help=help)
    else:
        diagnostics.error("T2C116", message, why.span, help=help)


def _check_names(
    source: Source,
    variants: Sequence[Defines],
    only: Sequence[str],
    kernels: Sequence[NormalKernel],
    refusals: Sequence[tuple[str, NotReady]],
    results: Sequence[Result],
    met: NamesMet | None,
) -> None:
    """Notes the names of a file, and checks the options where this is the only one."""
    names = met if met is not None else NamesMet()
    names.kernels |= {kernel.name for kernel in kernels} | {name for name, _ in refusals}
    names.qualified |= {
        f"{kernel.name}.{name}"
        for kernel in kernels
        for name in (*kernel.parameters, *kernel.sizes)
    }
    for result in results:
        if not result.made:
            names.kernels.add(_root_name(source, result.root))
        names.parameters |= set(result.root.parameters)
        for made in result.made:
            names.parameters |= set(made.ev.declared_sizes)
            names.sizes |= set(made.ev.declared_sizes)
    for defines in variants if met is None else ():
        names.check(defines, only)
