"""Compiles a kernel text together with the model, in the user's cache."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tile2c.runtime.emulate.cores.model import Model, quoted
from tile2c.runtime.errors import BackendUnavailable, CompileError

ARCHITECTURES = ("ascend910b",)
MODEL = Model("ascendc", Path(__file__).resolve().parent / "model")

KERNEL = re.compile(
    r'extern\s*"C"[^;{}()]*\b__global__\b(?:[^;{}()]|__mix__\s*\([^)]*\))*\bvoid\s+(\w+)\s*\('
)
# What kind of cores a kernel runs on: an attribute in front of it, or a line in its body.
TASK_TYPE = re.compile(r"\bKERNEL_TASK_TYPE_DEFAULT\s*\(\s*(KERNEL_TYPE_\w+)\s*\)")
MIX = re.compile(r"\b__mix__\s*\(\s*(\d)\s*,\s*(\d)\s*\)")
ALLOCATED = re.compile(
    r"\bLocalTensor\s*<[\w:\s]+>\s*(\w+)\s*(?:=\s*\w+\s*\.\s*Alloc\b|\(\s*[\w:]*TPosition)"
)
INIT_BUFFER = re.compile(r"\bInitBuffer\s*\(\s*([A-Za-z_]\w*(?:\s*(?:\.|->|\[\w*\])\s*\w*)*)\s*,")


def build(text: str, file_name: str, arch: str, entries: Sequence[str] = ()) -> Path:
    """The shared object of a kernel text; lines in its reports are those of `file_name`.

    `entries` are the names of the kernels; without any, those that the text exports. Raises
    CompileError with the compiler's messages, BackendUnavailable without a C++ compiler or for
    another architecture.
    """
    if arch not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise BackendUnavailable(f"the Ascend C model knows {known}, not {arch}")
    entries = tuple(entries) or kernel_names(text)
    if not entries:
        raise CompileError(f'{file_name}: no extern "C" __global__ kernel in it')
    return MODEL.built(_unit(text, file_name, entries), file_name)


def kernel_names(text: str) -> tuple[str, ...]:
    """The kernels that a text exports, in its order."""
    return tuple(dict.fromkeys(found[1] for found in KERNEL.finditer(text)))


def _unit(text: str, file_name: str, entries: Sequence[str]) -> str:
    """The translation unit: the text, then the tables that the model looks names up in."""
    name = quoted(Path(file_name).name)
    rows = ", ".join(
        f"emu::entry<&{entry}>({quoted(entry)}, AscendC::{kernel_type(text, entry)})"
        for entry in entries
    )
    buffers = ", ".join(f"{{{line}, {quoted(buffer)}}}" for line, buffer in _buffers(text))
    return (
        f"#line 1 {name}\n{text}\n"
        '#line 1 "tables"\n'
        f"static const emu::Entry emu_entries[] = {{{rows}}};\n"
        f"static const emu::BufferName emu_buffers[] = {{{buffers or '{0, 0}'}}};\n"
        f"const emu::Entries emu::entries = {{emu_entries, {len(entries)}}};\n"
        f"const emu::Module emu::module = {{{name}, "
        "emu_buffers, sizeof emu_buffers / sizeof *emu_buffers};\n"
    )


def kernel_type(text: str, entry: str) -> str:
    """The KERNEL_TYPE_... of a kernel: vector cores only, where the text does not say.

    `entry` may be an instance of a template: `name<30, 40>`.
    """
    name = re.escape(entry.partition("<")[0].strip())
    found = re.search(rf"\b__global__\b((?:[^;{{}}()]|{MIX.pattern})*)\bvoid\s+{name}\s*\(", text)
    if found is None:
        return "KERNEL_TYPE_AIV_ONLY"
    mix = MIX.search(found[1])
    if mix is not None:
        kind = "AIV" if mix[1] == "0" else "AIC"
        return f"KERNEL_TYPE_MIX_{kind}_{mix[1] if kind == 'AIC' else mix[2]}_{_second(mix)}"
    if "__cube__" in found[1]:
        return "KERNEL_TYPE_AIC_ONLY"
    following = re.search(r"\b__global__\b", text[found.end() :])
    said = TASK_TYPE.search(text[found.end() :][: following.start() if following else None])
    return said[1] if said is not None else "KERNEL_TYPE_AIV_ONLY"


def _second(mix: re.Match[str]) -> str:
    return mix[2] if mix[1] != "0" else "0"


def _buffers(text: str) -> Iterable[tuple[int, str]]:
    """The line and the first argument of each InitBuffer call; the same of tensors placed by hand."""
    for found in (*INIT_BUFFER.finditer(text), *ALLOCATED.finditer(text)):
        yield text.count("\n", 0, found.start()) + 1, re.sub(r"\s+", "", found[1])
