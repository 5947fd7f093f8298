"""What a launcher's function takes, as C++ text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tile2c.runtime.records import Argument, KernelRecord
from tile2c.transpile.record import record
from tile2c.transpile.render.launcher.expressions import CExpressions
from tile2c.transpile.render.launcher.layout import packed
from tile2c.transpile.render.launcher.names import Names
from tile2c.transpile.targets.host import PLAIN_TYPES, Host

# Scalars that callers pass as float -> the launcher's function for their bits.
BITS = {"float16": "half_bits", "bfloat16": "bfloat_bits"}


@record(frozen=False)
class Writer:
    """What one launcher is made of."""

    record: KernelRecord
    host: Host
    names: Names
    c: CExpressions
    wide: frozenset[str]  # sizes that kernels take with 64 bits

    def type_of(self, argument: Argument) -> str:
        """The C type of an element, as the header says it; `void` for one that no host has."""
        struct = self.host.structs.get(argument.dtype)
        if struct is not None:
            return f"struct {struct}"
        if argument.dtype in ("int4", "uint4", "float4_e2m1fn"):
            return "uint8_t"
        return PLAIN_TYPES.get(argument.dtype, "void")


def signature(writer: Writer, tail: str) -> str:
    """What the function takes: the author's arguments, sizes, workspace, stream; `tail` ends it."""
    names, found = writer.names, []
    for argument in writer.record.arguments:
        name = names.of[argument.name]
        if argument.kind == "scalar":
            narrow = argument.dtype in BITS
            kind = "float" if narrow else PLAIN_TYPES.get(argument.dtype, "float")
            found.append((f"{kind} {name}", f"a {argument.dtype}" if narrow else ""))
            continue
        const = "" if argument.written else "const "
        kind = writer.type_of(argument)
        found.append((f"{const}{kind}* {name}", _remark(argument, named=kind == "void")))
    found += [(f"int64_t {names.of[size]}", "") for size in writer.record.sizes]
    if writer.record.workspace_bytes is not None:
        found += [
            (f"void* {names.workspace}", "scratch memory on the device"),
            (f"size_t {names.workspace_bytes}", ""),
        ]
    stream = f"struct {writer.host.stream}*" if writer.host.stream else "void*"
    found.append((f"{stream} {names.stream}", ""))
    return _laid_out(f"int {names.launch}(", found, tail)


def _laid_out(head: str, parameters: Sequence[tuple[str, str]], tail: str) -> str:
    """Parameters behind the bracket: those with a remark on lines of their own."""
    start, lines, last = " " * len(head), [], len(parameters) - 1
    texts = [f"{text}," if n < last else text for n, (text, _) in enumerate(parameters)]
    numbers = range(len(parameters))
    for remarked, run in groupby(numbers, key=lambda number: bool(parameters[number][1])):
        group = list(run)
        if remarked:
            lines += [f"{start}{texts[n]}  // {parameters[n][1]}" for n in group]
        else:
            end = tail if group[-1] == last else ""
            lines += packed(start, [texts[n] for n in group], end, " ")
    return head + "\n".join(lines)[len(head) :]


def _remark(argument: Argument, *, named: bool) -> str:
    """The shape and what the kernel does with it; with `named` the element type in front."""
    shape = f"[{', '.join(map(str, argument.shape))}]"
    parts = [f"{argument.dtype} {shape}" if named else shape]
    if argument.strides is not None:
        parts.append(f"strides [{', '.join(map(str, argument.strides))}]")
    if argument.dtype in ("int4", "uint4", "float4_e2m1fn"):
        parts.append(f"two {argument.dtype} a byte")
    if argument.role != "in":
        parts.append("written" if argument.role == "out" else "read and written")
    return ", ".join(parts)
