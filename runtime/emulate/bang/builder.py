"""Compiles a kernel text together with the model, in the user's cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tile2c.runtime.emulate.cores.model import Model, quoted
from tile2c.runtime.errors import BackendUnavailable, CompileError

_KIB = 1024
_STACK = 128 * _KIB  # of NRAM, and of SRAM, what the compiler keeps for itself
# Architecture -> its number, and bytes of NRAM, WRAM and SRAM that arrays may take.
ARCHITECTURES = {
    "mtp_372": (372, 768 * _KIB - _STACK, 1024 * _KIB, 4096 * _KIB - _STACK),
    "mtp_592": (592, 512 * _KIB - _STACK, 512 * _KIB, 2048 * _KIB - _STACK),
}
# A text calls the model before each load and store of its own; it is not linked with the sanitizer.
_HOOKS = ("-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0", "-g1",
          "-fno-threadsafe-statics", "-fno-builtin-memcpy", "-fno-builtin-memset")  # fmt: skip
# Arrays of inline functions and of templates lie in their memory's section, as all others do.
_FLAGS = (*_HOOKS, "-fno-weak")
MODEL = Model("bang", Path(__file__).resolve().parent / "model", _FLAGS)

_KERNEL = re.compile(r"\b__mlu_(?:global|entry)__\b[^;{}()]*\bvoid\s+(\w+)\s*\(")
# A qualifier that begins the declaration of arrays or variables, up to its end.
_DECLARED = re.compile(
    r"__(nram|wram|mlu_shared)__(?P<type>\s+[\w:<>,\s]*?[\w>]\s+)(?P<rest>\w+\s*(?:\[|=|;|,)[^;{}()]*;)"
)
_MEMORY = {"nram": "NRAM", "wram": "WRAM", "mlu_shared": "SRAM"}
_LAUNCH = re.compile(r"<<<.*?>>>", re.DOTALL)


def build(
    text: str,
    file_name: str,
    arch: str,
    entries: Sequence[str] = (),
    folders: Sequence[Path] = (),
) -> Path:
    """The shared object of a kernel text; lines in its reports are those of `file_name`.

    `entries` are its kernels, `name`, `space::name` or `name<float>`; without any, those that the
    text has by their plain names. `folders` are searched for headers of its own. Raises CompileError
    with the compiler's messages, BackendUnavailable without a C++ compiler or for another
    architecture.
    """
    if arch not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise BackendUnavailable(f"the BANG C model knows {known}, not {arch}")
    entries = tuple(entries) or kernel_names(text)
    if not entries:
        raise CompileError(f"{file_name}: no __mlu_global__ kernel in it")
    unit = _unit(text, file_name, entries, arch)
    own = tuple(f"-I{folder}" for folder in folders)
    return MODEL.built(unit, file_name, own, header="bang.h", macros=_macros(arch))


def kernel_names(text: str) -> tuple[str, ...]:
    """The kernels of a text, in its order."""
    return tuple(dict.fromkeys(found[1] for found in _KERNEL.finditer(text)))


def _unit(text: str, file_name: str, entries: Sequence[str], arch: str) -> str:
    """The translation unit: the text with storage for its arrays, then the table of its kernels."""
    name = quoted(Path(file_name).name)
    number, nram, wram, sram = ARCHITECTURES[arch]
    rows = ", ".join(f"emu::entry<&{entry}>({quoted(entry)})" for entry in entries)
    return (
        '#include "prepared.h"\n'
        f"#line 1 {name}\n{with_storage(text)}\n"
        '#line 1 "tables"\n'
        f"static const emu::Entry emu_entries[] = {{{rows}}};\n"
        f"const emu::Entries emu::entries = {{emu_entries, {len(entries)}}};\n"
        f"const emu::Module emu::module = {{{name}, {number}, "
        f"{{0, 0, {nram}, {wram}, {sram}}}}};\n"
    )


def with_storage(text: str) -> str:
    """The text with its on-chip arrays in sections of their own, each under its name; lines stay."""

    def declared(found: re.Match[str]) -> str:
        rest, space = found["rest"], _MEMORY[found[1]]
        names = re.findall(r"(?:^|,)\s*(\w+)(?=\s*(?:\[[^,]*)?(?:=|,|;))", rest)
        named = " ".join(
            f'emu::Named emu_named_{name}("{name}", emu::{space}, &{name}, sizeof {name});'
            for name in names
        )
        return f"EMU_{space}{found['type']}{rest} {named}"

    return _LAUNCH.sub("", _DECLARED.sub(declared, text))


def _macros(arch: str) -> tuple[str, ...]:
    number, nram, wram, sram = ARCHITECTURES[arch]
    sizes = {"NRAM": nram + _STACK, "WRAM": wram, "SRAM": sram + _STACK}
    return (
        f"-D__BANG_ARCH__={number}",
        *(f"-D__MLU_{name}_SIZE__={size // _KIB}" for name, size in sizes.items()),
    )
