"""The fields of the launcher's two templates, from a manifest entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from tile2c.runtime.grid import MOST_TILES, SMS, asks_device
from tile2c.runtime.records import (
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
from tile2c.transpile.render.launcher.layout import fit
from tile2c.transpile.render.launcher.names import Names, names_for
from tile2c.transpile.render.launcher.signature import BITS, Writer, signature

if TYPE_CHECKING:
    from tile2c.transpile.output.generated import JsonValue
    from tile2c.transpile.targets import Target

Fields = dict[str, object]
_SHARED = "host"  # the folder of the templates that all launchers share


@record
class Launcher:
    """Both texts; the digest lines stay open (see output/header.py)."""

    header: str
    source: str
    names: Names


def write(
    entry: dict[str, JsonValue], target: Target, *, title: str, again: str, licence: str = ""
) -> Launcher:
    """The launcher of the kernel that `entry` describes.

    title  what the kernel's file starts with     again  the command that writes both
    """
    assert target.host is not None
    record = _without_optional_workspace(record_of(entry))
    names = names_for(record, target)
    scalars = {a.name for a in record.arguments if a.kind == "scalar"}
    tensors = {a.name: names.of[a.name] for a in record.arguments if a.kind == "tensor"}
    plain = {name: names.of[name] for name in (*record.sizes, *scalars)}
    if asks_device(record):
        plain[SMS] = names.fresh(SMS, key=SMS)
    wide = frozenset(
        item.name
        for launch in record.launches
        for item in launch.arguments
        if item.kind == "size" and item.dtype == "int64"
    )
    c = CExpressions(plain, tensors, frozenset(scalars))
    writer = Writer(record, target.host, names, c, wide)
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
        (*target.templates, _SHARED),
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
        signature=signature(writer, ");"),
        workspace=_workspace_parameters(writer),
        codes=[
            {"name": check.code, "value": -number, "message": check.message}
            for number, check in enumerate(checks, start=1)
        ],
    )
    text = fill(
        (*target.templates, _SHARED),
        "launcher/source.j2",
        **shared,
        lines=head([*lines, *compiled, sign]),
        header=names.header,
        file=stem,
        signature=signature(writer, ") {"),
        workspace=_workspace(writer),
        **source,
    )
    return Launcher(fit(header) + "\n", fit(text) + "\n", names)


def _without_optional_workspace(record: KernelRecord) -> KernelRecord:
    """The kernel as it runs without a workspace, where it can: callers need not bring one."""
    if not record.workspace_optional:
        return record

    def takes(item: LaunchArgument) -> bool:
        return item.kind == "workspace" or (item.map is not None and item.map.in_workspace)

    launches = tuple(x for x in record.launches if not any(map(takes, x.arguments)))
    return replace(record, launches=launches, workspace_bytes=None)


def _version() -> str:
    from tile2c import __version__

    return __version__


def _workspace_parameters(writer: Writer) -> str:
    if writer.record.workspace_bytes is None:
        return ""
    return ", ".join(f"int64_t {writer.names.of[size]}" for size in writer.record.sizes) or "void"


def _workspace(writer: Writer) -> Fields | None:
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


def _source(writer: Writer) -> tuple[list[Check], Fields]:
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
    if not c.helpers.isdisjoint(BITS.values()):
        headers.add("string.h")
    stream = writer.names.stream
    return checks, {
        "tests": tests,
        "checks": checks,
        "groups": groups,
        "largest": LARGEST_WORDS if any("largest_size" in t.condition for t in tests) else None,
        "entries": sorted({str(part["entry"]) for part in launches}),
        "values": list(values.values()),
        "helpers": sorted(c.helpers),
        "sms": writer.names.fresh(SMS, key=SMS) if asks_device(record) else "",
        "maps": bool(maps),
        "boxes": any(not m["lower"] for m in maps),
        "pixels": any(m["lower"] for m in maps),
        "shared": shared,
        "most_tiles": MOST_TILES if any(part["tiles"] for part in launches) else 0,
        "signed": _signed(writer),
        "clusters": any(part["cluster"] for part in launches),
        "headers": sorted(headers),
        "stream": stream
        if writer.host.stream or writer.host.stream_is_void
        else f"static_cast<{writer.host.stream_type}>({stream})",
    }


def _opening(part: Fields, number: int) -> str:
    """How a launch of a group begins; the braces are the template's."""
    if part["when"] is None:
        return "} else " if number else ""
    return f"{'} else ' if number else ''}if ({part['when']}) "


def _later(writer: Writer, maps: Sequence[Fields], shared: int) -> list[Check]:
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
    message = "the sizes ask for more blocks than a grid can have"
    found.append(Check("grid_too_large", "", message))
    if _signed(writer):
        message = "the sizes ask for a grid with a negative side"
        found.append(Check("grid_negative", "", message))
    if shared > writer.host.default_shared:
        message = f"the device has no {shared} bytes of shared memory for one block"
        found.append(Check("shared_memory_too_small", "", message))
    for item in {str(m["code"]): m for m in maps}.values():
        message = f"{item['author']} cannot be described to the bulk copy unit"
        found.append(Check(str(item["code"]), "", message))
    return found


def _signed(writer: Writer) -> bool:
    """Whether some side of a grid may be negative."""
    launches = writer.record.launches
    return any(writer.c.may_be_negative(x) for one in launches for x in one.tiles or one.grid)


def _values(writer: Writer) -> dict[str, Fields]:
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
                if dtype in BITS:
                    found[item.name] = _narrow(writer, item.name, dtype)
    return found


def _narrow(writer: Writer, name: str, dtype: str) -> Fields:
    """The variable with a scalar as kernels take it: by the vendor's function, or its bits."""
    known = writer.host.narrow.get(dtype)
    kind, function = "uint16_t", BITS[dtype]
    if known is None:
        writer.c.helpers.add(function)
    else:
        kind, function = writer.host.structs[dtype], known[1]
    variable = writer.names.fresh(f"{name}_narrow", key=name)
    return {"name": variable, "type": kind, "value": f"{function}({writer.names.of[name]})"}


def _launch(writer: Writer, launch: Launch, values: dict[str, Fields]) -> Fields:
    c = writer.c
    maps = [_map(writer, item.map) for item in launch.arguments if item.map is not None]
    return {
        "entry": launch.entry,
        "when": None if launch.when is None else c(launch.when),
        "grid": ", ".join(c(extent) for extent in launch.grid),
        "tiles": ", ".join(c(extent) for extent in launch.tiles),
        "blocks": c(launch.grid[0]),
        "block": ", ".join(str(extent) for extent in launch.block),
        "shared": int(launch.shared_bytes),
        "cluster": ", ".join(map(str, launch.cluster)) if launch.cluster else "",
        "maps": maps,
        "offsets": _offsets(writer, launch),
        "arguments": [_argument(writer, item, values) for item in launch.arguments],
        "handed": [_handed(writer, item, values) for item in launch.arguments],
    }


def _offsets(writer: Writer, launch: Launch) -> list[Fields]:
    """Where each scratch tensor of a launch starts in the workspace."""
    found: list[Fields] = []
    for item in launch.arguments:
        if item.kind == "workspace":
            name = writer.names.fresh(f"{item.name}_scratch", key=f"scratch {item.name}")
            offset = writer.c(item.value or 0, within=13)
            start = f"static_cast<char*>({writer.names.workspace})"
            found.append({"name": name, "start": start if offset == "0" else f"{start} + {offset}"})
    return found


def _argument(writer: Writer, item: LaunchArgument, values: dict[str, Fields]) -> str:
    """The variable whose address is handed over."""
    if item.map is not None:
        return writer.names.fresh(item.name, key=f"map {item.name}")
    if item.kind == "workspace":
        return writer.names.fresh(f"{item.name}_scratch", key=f"scratch {item.name}")
    if item.name in values:
        return str(values[item.name]["name"])
    return writer.names.of[item.name]


def _handed(writer: Writer, item: LaunchArgument, values: dict[str, Fields]) -> str:
    """As a kernel takes it that is called by its name: pointers to bytes, or to its elements."""
    name = _argument(writer, item, values)
    if item.kind not in ("tensor", "workspace"):
        return name
    if writer.host.elements is None:
        return f"device_bytes({name})"
    argument = writer.record.argument(item.name)
    kind = writer.host.elements.get(argument.dtype)
    if kind is None:
        return name
    return f"static_cast<{'' if argument.written else 'const '}{kind}*>({name})"


_SWIZZLES = {"none": "NONE", "32B": "32B", "64B": "64B", "128B": "128B"}
_L2 = {"none": "NONE", "64B": "L2_64B", "128B": "L2_128B", "256B": "L2_256B"}
_FILLS = {"zeros": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}


def _map(writer: Writer, record: MapRecord) -> Fields:
    c = writer.c
    tensor = writer.names.of[record.tensor]
    kind = record.dtype.upper() if record.dtype in KINDS else "UINT8"
    offset = c(record.offset, within=13)
    lower, upper = record.corners or ((), ())
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
        "lower": ", ".join(map(str, lower)),
        "upper": ", ".join(map(str, upper)),
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
