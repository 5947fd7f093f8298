"""The text step: preprocessed kernel text in, C++ for the host out, line by line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tile2c.runtime.emulate.text.asm import TextError, parse_statement
from tile2c.runtime.emulate.text.shared_arrays import place
from tile2c.runtime.emulate.text.tokens import Token, join, matching, tokenize
from tile2c.runtime.emulate.text.translate import translate
from tile2c.runtime.emulate.text.vectors import rewrite_vectors

_INCLUDE = re.compile(r'^([ \t]*)#([ \t]*)include([ \t]*[<"][^>"\n]+[>"])', re.MULTILINE)
_KEPT = re.compile(r'^#pragma tile2c_include([ \t]*[<"][^>"\n]+[>"])', re.MULTILINE)


def hide_includes(text: str) -> str:
    """Includes as pragmas, so that preprocessing expands the file's own macros and nothing else."""
    return _INCLUDE.sub(r"\1#pragma tile2c_include\3", text)


def show_includes(text: str) -> str:
    """The includes again."""
    return _KEPT.sub(r"#include\1", text)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A `__global__` function that can be launched by name."""

    name: str
    bounds: str  # arguments of __launch_bounds__, C++ expressions
    cluster: str


def _is_asm(tokens: list[Token], at: int) -> int | None:
    """The index of the opening bracket if an asm statement starts at `at`."""
    if tokens[at].text not in {"asm", "__asm__", "__asm"}:
        return None
    index = at + 1
    while index < len(tokens):
        token = tokens[index]
        if token.is_blank or token.text in {"volatile", "__volatile__", "inline", "goto"}:
            index += 1
            continue
        return index if token.text == "(" else None
    return None


def _file_scope(tokens: list[Token]) -> list[bool]:
    """For each token, whether it stands outside all functions, classes and initializers."""
    result = []
    stack: list[bool] = []
    head: list[str] = []
    for token in tokens:
        result.append(all(stack))
        if token.is_blank:
            continue
        if token.text == "{":
            named = head[:1] == ["namespace"] or head == ["extern", '"C"']
            stack.append(named)
            head = []
        elif token.text == "}":
            if stack:
                stack.pop()
            head = []
        elif token.text == ";" or token.kind == "mark_line":
            head = []
        else:
            head.append(token.text)
    return result


def _kernel(tokens: list[Token], at: int) -> Kernel | None:
    """The kernel that the `__global__` at index `at` belongs to; None for templates."""
    before = at - 1
    while before >= 0 and not (tokens[before].kind == "punct" and tokens[before].text in ";{}"):
        if tokens[before].text == "template":
            return None
        before -= 1
    bounds, cluster, name = "", "", ""
    index = at + 1
    while index < len(tokens):
        token = tokens[index]
        if token.text == "(":
            inside = join(tokens[index + 1 : matching(tokens, index)]).replace("\n", " ")
            if name == "__launch_bounds__":
                bounds = inside
            elif name == "__cluster_dims__":
                cluster = inside
            elif name not in {"__attribute__", "__maxnreg__", "alignas", "__align__"}:
                return Kernel(name, bounds, cluster)
            index = matching(tokens, index)
        elif token.kind == "name":
            name = token.text
        elif token.text in ";{":
            return None
        index += 1
    return None


def _table(kernels: list[Kernel]) -> str:
    rows = []
    for kernel in kernels:
        cluster = f"EMU_CLUSTER({kernel.cluster})" if kernel.cluster else "{0, 0, 0}"
        most = f"emu::first_of({kernel.bounds})" if kernel.bounds else "0"
        least = f"emu::second_of({kernel.bounds})" if kernel.bounds else "0"
        rows.append(
            f'    {{"{kernel.name}", &emu::Call<&{kernel.name}>::run, '
            f"emu::parameter_count(&{kernel.name}), emu::Call<&{kernel.name}>::sizes, "
            f"{most}, {cluster}, {least}}},\n"
        )
    return (
        '\n#line 1 "table"\n'
        "static const emu::Entry emu_entries[] = {\n"
        + "".join(rows)
        + "    {nullptr, nullptr, 0, nullptr, 0, {0, 0, 0}, 0}};\n"
        'extern "C" const emu::Module emu_module = {emu_entries, '
        f"{len(kernels)}, EMU_WARP, EMU_STATIC_LIMIT, EMU_TOTAL_LIMIT, EMU_ARCH_NAME}};\n"
    )


# `auto& A_shared = shared.A_shared;`: reports then know the member by its name.
_PART = re.compile(r"\bauto& (\w+) = (\w+)\.\1;")


def rewrite(text: str, arch: str, instances: Sequence[str] = ()) -> str:
    """C++ for one preprocessed file.

    arch       the target, as `sm_80`: instructions that it lacks are refused
    instances  kernels of templates, as `scale<16>`, that can be launched as well
    Raises TextError with the author's line.
    """
    tokens = rewrite_vectors(tokenize(_PART.sub(r'auto& \1 = emu::part(\2.\1, "\1");', text)))
    outside = _file_scope(tokens)
    out: list[str] = []
    kernels: list[Kernel] = []
    starts: list[int] = []  # where in `out` the text of a token begins
    serial = 0
    at = 0
    while at < len(tokens):
        token = tokens[at]
        starts += [len(out)] * (at + 1 - len(starts))
        opening = _is_asm(tokens, at) if token.kind == "name" else None
        if opening is not None:
            end = matching(tokens, opening)
            statement = parse_statement(tokens[opening + 1 : end], token.line)
            serial += 1
            out.append(translate(statement, arch, serial))
            out.append("\n" * join(tokens[at:end]).count("\n"))
            at = end + 1
            continue
        if token.text == "__shared__":
            declaration = place(tokens, at, outside[at])
            del out[starts[declaration.start] :]
            out.append(declaration.text)
            at = declaration.end
            continue
        if token.text == "__global__" and outside[at]:
            kernel = _kernel(tokens, at)
            if kernel and kernel.name not in {known.name for known in kernels}:
                kernels.append(kernel)
        out.append(token.text)
        at += 1
    kernels += [Kernel(name, "", "") for name in instances]
    return show_includes("".join(out)) + _table(kernels)


__all__ = ["TextError", "hide_includes", "rewrite"]
