"""The fields of the launcher's two templates, from a manifest entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from tile2c.runtime.records import (
    Argument,
    Expression,
    KernelRecord,
    Launch,
    LaunchArgument,
    MapRecord,
    record_of,
)
from tile2c.runtime.tensor_maps import KINDS
from tile2c.transpile.record import record
from tile2c.transpile.render.engine import fill
from tile2c.transpile.render.finish import head
from tile2c.transpile.render.header import DIGEST
from tile2c.transpile.render.launcher.checks import LARGEST_WORDS, Check, argument_checks
from tile2c.transpile.render.launcher.expressions import CExpressions
from tile2c.transpile.render.launcher.layout import fit, packed
from tile2c.transpile.render.launcher.names import Names, names_for
from tile2c.transpile.targets.host import PLAIN_TYPES, Host

if TYPE_CHECKING:
    from tile2c.transpile.output.generated import JsonValue
    from tile2c.transpile.targets import Target

Fields = dict[str, object]


@record
class Launcher:
    """Both texts; the digest lines stay open (see output/header.py)."""

    header: str
    source: str
    names: Names


@dataclass(slots=True)
class _Writer:
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


def write(
    entry: dict[str, JsonValue], target: Target, *, title: str, again: str, licence: str = ""
) -> Launcher:
    """The launcher of the kernel that `entry` describes.

    title  the first line of the kernel's file     again  the command that writes both
    """
    assert target.host is not None
    record = record_of(entry)
    names = names_for(record, target)
    scalars = {a.name for a in record.arguments if a.kind == "scalar"}
    tensors = {a.name: names.of[a.name] for a in record.arguments if a.kind == "tensor"}
    plain = {name: names.of[name] for name in (*record.sizes, *scalars)}
    wide = frozenset(
        item.name
        for launch in record.launches
        for item in launch.arguments
        if item.kind == "size" and item.dtype == "int64"
    )
    c = CExpressions(plain, tensors, frozenset(scalars))
    writer = _Writer(record, target.host, names, c, wide)
    checks, source = _source(writer)
    shared = {
        "title": title,
        "licence": licence,
        "name": record.name,
        "functions": names,
        "host": target.host,
    }
    stem = record.file.rpartition("/")[2]
    paths = {"file": names.source}
    lines = [
        f"from     {record.source} by tile2c {_version()}",
        f"target   {record.target}",
        f"again    {again}",
    ]
    sign = f"text     sha256 {DIGEST}  (edit freely: `tile2c --merge` keeps your changes)"
    compiled = [
        f"compile  {target.host.compile.format(**paths)}",
        f"kernels  {target.host.together.format(file=stem)}",
    ]
    header = fill(
        target.templates,
        "launcher/header.j2",
        **shared,
        lines=head([*lines, sign]),
        structs=sorted(
            {
                struct
                for a in record.arguments
                if a.kind == "tensor" and (struct := target.host.structs.get(a.dtype))
            }
        ),
        signature=_signature(writer, ");"),
        workspace=_workspace_parameters(writer),
        codes=[
            {"name": check.code, "value": -number, "message": check.message}
            for number, check in enumerate(checks, start=1)
        ],
    )
    text = fill(
        target.templates,
        "launcher/source.j2",
        **shared,
        lines=head([*lines, *compiled, sign]),
        header=names.header,
        file=stem,
        signature=_signature(writer, ") {"),
        workspace=_workspace(writer),
        **source,
    )
    return Launcher(fit(header) + "\n", fit(text) + "\n", names)


def _version() -> str:
    from tile2c import __version__

    return __version__


def _signature(writer: _Writer, tail: str) -> str:
    """What the function takes: the author's arguments, sizes, workspace, stream; `tail` ends it."""
    names, found = writer.names, []
    for argument in writer.record.arguments:
        name = names.of[argument.name]
        if argument.kind == "scalar":
            narrow = argument.dtype in writer.host.narrow
            kind = "float" if narrow else PLAIN_TYPES.get(argument.dtype, "float")
            found.append((f"{kind} {name}", f"a {argument.dtype}" if narrow else ""))
            continue
        const = "" if argument.written else "const "
        found.append((f"{const}{writer.type_of(argument)}* {name}", _remark(argument)))
    found += [(f"int64_t {names.of[size]}", "") for size in writer.record.sizes]
    if writer.record.workspace_bytes is not None:
        found += [
            (f"void* {names.workspace}", "scratch memory on the device"),
            (f"size_t {names.workspace_bytes}", ""),
        ]
    found.append((f"struct {writer.host.stream}* {names.stream}", ""))
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


def _remark(argument: Argument) -> str:
    shape = f"[{', '.join(map(str, argument.shape))}]"
    parts = [shape]
    if argument.strides is not None:
        parts.append(f"strides [{', '.join(map(str, argument.strides))}]")
    if argument.dtype in ("int4", "uint4", "float4_e2m1fn"):
        parts.append(f"two {argument.dtype} a byte")
    if argument.role != "in":
        parts.append("written" if argument.role == "out" else "read and written")
    return ", ".join(parts)


def _workspace_parameters(writer: _Writer) -> str:
    if writer.record.workspace_bytes is None:
        return ""
    return ", ".join(f"int64_t {writer.names.of[size]}" for size in writer.record.sizes) or "void"


def _workspace(writer: _Writer) -> Fields | None:
    if writer.record.workspace_bytes is None:
        return None
    sizes = ", ".join(f"int64_t {writer.names.of[size]}" for size in writer.record.sizes)
    return {
        "declared": sizes,
        "given": ", ".join(writer.names.of[size] for size in writer.record.sizes),
        "bytes": writer.c(writer.record.workspace_bytes),
        "align": writer.record.workspace_align,
        "pointer": writer.names.workspace,
        "size": writer.names.workspace_bytes,
    }


def _source(writer: _Writer) -> tuple[list[Check], Fields]:
    """Fields of the C++ file that both texts depend on."""
    record, c = writer.record, writer.c
    tests = argument_checks(record, c, writer.wide)
    values = _values(writer)
    groups = [
        [_launch(writer, launch, values) for launch in group]
        for _, group in groupby(record.launches, key=lambda launch: launch.group)
    ]
    for group in groups:
        for number, part in enumerate(group):
            part["word"] = _opening(part, number)
        reached = next((n for n, part in enumerate(group) if part["when"] is None), len(group))
        del group[reached + 1 :]
    launches = [part for group in groups for part in group]
    maps = [m for part in launches for m in part["maps"]]  # type: ignore[attr-defined]
    shared = max((int(launch.shared_bytes) for launch in record.launches), default=0)
    checks = [*tests, *_later(writer, maps, shared)]
    scalars = [a for a in record.arguments if a.kind == "scalar"]
    headers = {writer.host.narrow[a.dtype][0] for a in scalars if a.dtype in writer.host.narrow}
    return checks, {
        "tests": tests,
        "checks": checks,
        "groups": groups,
        "largest": LARGEST_WORDS if any("largest_size" in t.condition for t in tests) else None,
        "entries": sorted({str(part["entry"]) for part in launches}),
        "values": list(values.values()),
        "helpers": sorted(c.helpers),
        "maps": bool(maps),
        "shared": shared,
        "clusters": any(part["cluster"] for part in launches),
        "headers": sorted(headers),
    }


def _opening(part: Fields, number: int) -> str:
    """How a launch of a group begins; the braces are the template's."""
    if part["when"] is None:
        return "} else " if number else ""
    return f"{'} else ' if number else ''}if ({part['when']}) "


def _later(writer: _Writer, maps: Sequence[Fields], shared: int) -> list[Check]:
    """Codes that are given while launching."""
    names, found = writer.names, []
    if writer.record.workspace_bytes is not None:
        pointer = names.workspace
        align = writer.record.workspace_align
        writer.c.helpers.add("address")
        found += [
            Check(f"{pointer}_too_small", "", "the workspace is too small"),
            Check(f"{pointer}_null", "", "the workspace is null"),
            Check(
                f"{pointer}_misaligned",
                "",
                f"the workspace does not start at a multiple of {align} bytes",
            ),
        ]
    found.append(Check("grid_too_large", "", "the sizes ask for more blocks than a grid can have"))
    if shared > writer.host.default_shared:
        message = f"the device has no {shared} bytes of shared memory for one block"
        found.append(Check("shared_memory_too_small", "", message))
    for item in {str(m["code"]): m for m in maps}.values():
        message = f"{item['author']} cannot be described to the bulk copy unit"
        found.append(Check(str(item["code"]), "", message))
    return found


def _values(writer: _Writer) -> dict[str, Fields]:
    """Variables for what kernels take in another type than the function: sizes, narrow scalars."""
    found: dict[str, Fields] = {}
    for launch in writer.record.launches:
        for item in launch.arguments:
            if item.kind == "size":
                expression = item.name if item.value is None else item.value
                wide = item.dtype == "int64"
                if wide and item.value is None:
                    continue
                kind = "int64_t" if wide else "int32_t"
                name = writer.names.fresh(f"{item.name}_{'wide' if wide else 'int'}", key=item.name)
                found[item.name] = {
                    "name": name,
                    "type": kind,
                    "value": f"static_cast<{kind}>({writer.c(expression)})",
                }
            elif item.kind == "scalar":
                dtype = item.dtype or writer.record.argument(item.name).dtype
                narrow = writer.host.narrow.get(dtype)
                if narrow is not None:
                    given = writer.names.of[item.name]
                    name = writer.names.fresh(f"{item.name}_narrow", key=item.name)
                    kind = writer.host.structs[dtype]
                    found[item.name] = {
                        "name": name,
                        "type": kind,
                        "value": f"{narrow[1]}({given})",
                    }
    return found


def _launch(writer: _Writer, launch: Launch, values: dict[str, Fields]) -> Fields:
    c = writer.c
    maps = [_map(writer, item.map) for item in launch.arguments if item.map is not None]
    return {
        "entry": launch.entry,
        "when": None if launch.when is None else c(launch.when),
        "grid": ", ".join(c(extent) for extent in launch.grid),
        "block": ", ".join(str(extent) for extent in launch.block),
        "shared": int(launch.shared_bytes),
        "cluster": ", ".join(map(str, launch.cluster)) if launch.cluster else "",
        "maps": maps,
        "offsets": _offsets(writer, launch),
        "arguments": [_argument(writer, item, values) for item in launch.arguments],
    }


def _offsets(writer: _Writer, launch: Launch) -> list[Fields]:
    """Where each scratch tensor of a launch starts in the workspace."""
    found: list[Fields] = []
    for item in launch.arguments:
        if item.kind == "workspace":
            name = writer.names.fresh(f"{item.name}_scratch", key=f"scratch {item.name}")
            offset = writer.c(item.value or 0, within=13)
            start = f"static_cast<char*>({writer.names.workspace})"
            found.append({"name": name, "start": start if offset == "0" else f"{start} + {offset}"})
    return found


def _argument(writer: _Writer, item: LaunchArgument, values: dict[str, Fields]) -> str:
    """The variable whose address is handed over."""
    if item.map is not None:
        return writer.names.fresh(item.name, key=f"map {item.name}")
    if item.kind == "workspace":
        return writer.names.fresh(f"{item.name}_scratch", key=f"scratch {item.name}")
    if item.name in values:
        return str(values[item.name]["name"])
    return writer.names.of[item.name]


_SWIZZLES = {"none": "NONE", "32B": "32B", "64B": "64B", "128B": "128B"}
_L2 = {"none": "NONE", "64B": "L2_64B", "128B": "L2_128B", "256B": "L2_256B"}
_FILLS = {"zeros": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}


def _map(writer: _Writer, record: MapRecord) -> Fields:
    c = writer.c
    tensor = writer.names.of[record.tensor]
    kind = record.dtype.upper() if record.dtype in KINDS else "UINT8"
    offset = c(record.offset, within=13)
    return {
        "name": writer.names.fresh(record.name, key=f"map {record.name}"),
        "code": f"{tensor}_not_copyable",
        "author": record.tensor,
        "kind": f"CU_TENSOR_MAP_DATA_TYPE_{kind}",
        "rank": len(record.dims),
        "address": tensor if offset == "0" else _moved(c, tensor, offset),
        "dims": _unsigned(c, record.dims),
        "strides": _unsigned(c, record.strides) or "0",
        "box": ", ".join(c(extent) for extent in record.box),
        "steps": ", ".join(c(stride) for stride in record.element_strides),
        "swizzle": f"CU_TENSOR_MAP_SWIZZLE_{_SWIZZLES[record.swizzle]}",
        "l2": f"CU_TENSOR_MAP_L2_PROMOTION_{_L2[record.l2]}",
        "fill": f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{_FILLS[record.fill]}",
    }


def _moved(c: CExpressions, tensor: str, offset: str) -> str:
    c.helpers.add("bytes_of")
    return f"bytes_of({tensor}) + {offset}"


def _unsigned(c: CExpressions, values: Sequence[Expression]) -> str:
    texts = [c(value) for value in values]
    return ", ".join(text if text.isdecimal() else f"cuuint64_t({text})" for text in texts)
