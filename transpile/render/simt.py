"""The text of a threaded kernel and its manifest entry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tile2c.transpile.ir.expr import Const, Expr
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Body,
    Entry,
    EntryParam,
    LaunchPlan,
    Plan,
    ScalarArg,
    TensorArg,
    TensorMap,
)
from tile2c.transpile.output.generated import GeneratedKernel, JsonValue
from tile2c.transpile.render.engine import fill
from tile2c.transpile.render.expressions import CPrinter
from tile2c.transpile.render.finish import finish, head, title
from tile2c.transpile.render.header import head_lines
from tile2c.transpile.render.marks import Marks
from tile2c.transpile.render.statements import StatementPrinter

if TYPE_CHECKING:
    from tile2c.transpile.stage import NormalKernel
    from tile2c.transpile.targets import Target


def render(
    plan: Plan,
    target: Target,
    kernel: NormalKernel,
    *,
    several: bool,
    line_info: bool,
    again: str = "",
) -> GeneratedKernel:
    """Fills the templates with the plan; the digest line stays open (see output/header.py)."""
    if several:
        plan = _with_arch(plan, target.arch)
    printer = CPrinter(target.dialect)
    marks = Marks()
    statements = StatementPrinter(target.templates, printer, marks)
    stem = PurePosixPath(kernel.source_file).name
    text = fill(
        target.templates,
        "kernel.j2",
        head={
            "title": title(plan.name, plan.summary),
            "lines": head(head_lines(plan, target, stem, again)),
            "comments": [line for line in plan.comments if line.strip() != plan.summary],
        },
        headers=plan.headers,
        constants=[_constant(constant, printer) for constant in plan.constants],
        helpers=[
            finish(fill(target.templates, f"helpers/{helper.template}.j2", **dict(helper.fields)))
            for helper in plan.helpers
        ],
        sources=[source.strip("\n") for source in plan.sources],
        bodies=[finish(_body(body, target, statements)) for body in plan.bodies],
        entries=[finish(_entry(entry, target, statements)) for entry in plan.entries],
    )
    plain, origins = marks.resolve(text + "\n", line_directives=line_info)
    return GeneratedKernel(
        name=plan.name,
        target=target.name,
        suffix=target.suffix,
        text=plain,
        manifest=_manifest(plan, target, kernel, printer),
        origins=origins,
    )


def _with_arch(plan: Plan, arch: str) -> Plan:
    """Entry points of several targets that are linked together need different names."""
    return replace(
        plan,
        entries=tuple(replace(entry, name=f"{entry.name}_{arch}") for entry in plan.entries),
        launches=tuple(replace(launch, entry=f"{launch.entry}_{arch}") for launch in plan.launches),
    )


def _constant(constant: Const, printer: CPrinter) -> str:
    bare = Const(dtype=constant.dtype, value=constant.value)
    return f"constexpr {printer.type_name(constant.dtype)} {constant.name} = {printer(bare)};"


def _params(
    params: tuple[EntryParam, ...], printer: CPrinter, *, of_entry: bool
) -> list[dict[str, str]]:
    last = len(params) - 1
    return [
        {
            "declaration": _declaration(param, printer, of_entry=of_entry),
            "end": ") {" if index == last else ",",
            "remark": f"  // {param.remark}" if param.remark else "",
        }
        for index, param in enumerate(params)
    ]


def _declaration(param: EntryParam, printer: CPrinter, *, of_entry: bool) -> str:
    if param.kind == "tensor_map" and of_entry:
        return f"const __grid_constant__ TensorMap {param.name}"
    if param.kind == "tensor_map":
        return f"const TensorMap& {param.name}"
    kind = printer.type_name(param.dtype)
    if param.kind in ("tensor", "workspace"):
        const = "" if param.written else "const "
        restrict = " __restrict__" if param.restrict else ""
        return f"{const}{kind}*{restrict} {param.name}"
    return f"{kind} {param.name}"


def _body(body: Body, target: Target, statements: StatementPrinter) -> str:
    return fill(
        target.templates,
        "body.j2",
        name=body.name,
        parameters=", ".join(body.template),
        params=_params(body.params, statements.c, of_entry=False),
        body=statements.block(body.body),
        comments=body.comments,
    )


def _entry(entry: Entry, target: Target, statements: StatementPrinter) -> str:
    threads = entry.threads[0] * entry.threads[1] * entry.threads[2]
    bounds = f"{threads}, {entry.min_blocks}" if entry.min_blocks else str(threads)
    return fill(
        target.templates,
        "entry.j2",
        name=entry.name,
        bounds=bounds,
        params=_params(entry.params, statements.c, of_entry=True),
        body=statements.block(entry.body),
        comments=entry.comments,
    )


def _manifest(
    plan: Plan, target: Target, kernel: NormalKernel, printer: CPrinter
) -> dict[str, JsonValue]:
    return {
        "name": plan.name,
        "target": target.name,
        "entry": plan.entries[0].name,
        "source": {
            "file": kernel.source_file,
            "line": kernel.source_line,
            "sha256": kernel.source_sha256,
        },
        "parameters": {name: _json(value) for name, value in kernel.parameters.items()},
        "sizes": [size.name for size in plan.sizes],
        "args": [_arg(arg, printer) for arg in plan.args],
        "launch": [_launch(launch, plan, printer) for launch in plan.launches],
        "requires": list(plan.requires),
        "workspace": _workspace(plan, printer),
        "modules": [],
    }


def _workspace(plan: Plan, printer: CPrinter) -> JsonValue:
    if not plan.workspace:
        return None
    last = plan.workspace[-1]
    size = printer(b.for_host(b.add(last.offset, last.bytes)))
    if not plan.workspace_when:
        return {"bytes": size, "align": 256}
    if plan.workspace_when == "1":
        return {"bytes": size, "align": 256, "optional": True}
    return {"bytes": f"({plan.workspace_when}) * ({size})", "align": 256, "optional": True}


def _json(value: object) -> JsonValue:
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def _arg(arg: TensorArg | ScalarArg, printer: CPrinter) -> JsonValue:
    if isinstance(arg, ScalarArg):
        return {"name": arg.name, "kind": "scalar", "dtype": arg.dtype.name}
    entry: dict[str, JsonValue] = {
        "name": arg.name,
        "kind": "tensor",
        "dtype": arg.dtype.name,
        "shape": [_size(extent, printer) for extent in arg.shape],
        "role": arg.role,
    }
    if arg.strides is not None:
        entry["strides"] = [_size(stride, printer) for stride in arg.strides]
    return entry


def _size(extent: Expr, printer: CPrinter) -> JsonValue:
    """A plain number where it is known, else an expression over sizes (no author's constants)."""
    return int(extent.value) if isinstance(extent, Const) else printer(b.for_host(extent))


def _launch(launch: LaunchPlan, plan: Plan, printer: CPrinter) -> JsonValue:
    entry = next(entry for entry in plan.entries if entry.name == launch.entry)
    return {
        "group": launch.group,
        "when": launch.when,
        "entry": launch.entry,
        "grid": [printer(b.for_host(extent)) for extent in launch.grid],
        "block": list(launch.block),
        "shared_bytes": launch.shared_bytes,
        "cluster": list(launch.cluster) if launch.cluster else None,
        **({"tiles": [printer(b.for_host(x)) for x in launch.tiles]} if launch.tiles else {}),
        "args": [_launch_arg(param, plan, printer) for param in launch.params or entry.params],
    }


def _launch_arg(param: EntryParam, plan: Plan, printer: CPrinter) -> JsonValue:
    if param.kind == "workspace":
        part = next(part for part in plan.workspace if part.name == param.name)
        return {"kind": "workspace", "name": param.name, "value": printer(b.for_host(part.offset))}
    if param.map is None:
        wide = {"dtype": "int64"} if param.kind == "size" and param.dtype.bits == 64 else {}
        value = {} if param.value is None else {"value": printer(b.for_host(param.value))}
        return {"kind": param.kind, "name": param.name, **wide, **value}
    described: TensorMap = param.map
    more: dict[str, JsonValue] = {}
    if described.workspace:
        part = next(part for part in plan.workspace if part.name == described.workspace)
        more |= {"workspace": True, "offset": printer(b.for_host(part.offset))}
    if described.corners is not None:
        lower, upper = (list[JsonValue](x) for x in described.corners)
        more["im2col"] = {"lower": lower, "upper": upper}
    return {
        "kind": "tensor_map",
        "name": param.name,
        "tensor": described.tensor,
        "dtype": described.dtype.name,
        "dims": [printer(b.for_host(dim)) for dim in described.dims],
        "strides": [printer(b.for_host(stride)) for stride in described.strides],
        "box": list(described.box),
        "element_strides": list(described.element_strides or (1,) * len(described.box)),
        **more,
        "swizzle": described.swizzle,
        "l2": described.l2,
        "fill": "zeros",
    }
