"""The manifest entry of a kernel for cores."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from tile2c.transpile.ir.expr import Binary, Const, Expr
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.cores.plan import CoresPlan, ScalarParam, TensorParam, WorkTensor
from tile2c.transpile.output.generated import JsonValue
from tile2c.transpile.render.cores_steps import CoresPrinter

if TYPE_CHECKING:
    from tile2c.transpile.stage import NormalKernel
    from tile2c.transpile.targets.cores import CoresTarget


def manifest_of(
    plan: CoresPlan, symbol: str, target: CoresTarget, kernel: NormalKernel, printer: CoresPrinter
) -> dict[str, JsonValue]:
    blocks = printer(host_blocks(plan))
    grid = f"min({blocks}, {plan.cores or target.cores})" if plan.persistent else blocks
    launch: dict[str, JsonValue] = {
        "group": 0,
        "when": None,
        "entry": symbol,
        "grid": [grid, "1", "1"],
        "block": [1, 1, 1],
        "shared_bytes": 0,
        "cluster": None,
        **({"tiles": [printer(b.for_host(x)) for x in plan.extents]} if plan.persistent else {}),
        "args": [_launch_arg(param) for param in ordered_params(plan)],
    }
    return {
        "name": plan.name,
        "target": target.name,
        "entry": symbol,
        "source": {
            "file": kernel.source_file,
            "line": kernel.source_line,
            "sha256": kernel.source_sha256,
        },
        "parameters": {name: _json(value) for name, value in kernel.parameters.items()},
        "sizes": list(plan.sizes),
        "args": [
            _arg(param, printer)
            for param in plan.params
            if isinstance(param, TensorParam) or param.kind == "scalar"
        ],
        "launch": [launch],
        "workspace": _workspace(plan),
        "modules": [],
    }


def host_blocks(plan: CoresPlan) -> Expr:
    """How many blocks the tile program has, as the host says it."""
    return reduce(b.mul, map(b.for_host, plan.extents))


def ordered_params(plan: CoresPlan) -> list[TensorParam | WorkTensor | ScalarParam]:
    """The parameters of the text: tensors, those in the workspace, then numbers."""
    tensors = [param for param in plan.params if isinstance(param, TensorParam)]
    numbers = [param for param in plan.params if isinstance(param, ScalarParam)]
    if plan.mix is None:
        return list(plan.params)
    return [*tensors, *plan.mix.workspace, *numbers]


def _launch_arg(param: TensorParam | WorkTensor | ScalarParam) -> JsonValue:
    if isinstance(param, WorkTensor):
        return {"kind": "workspace", "name": param.param, "value": str(param.offset)}
    kind = "tensor" if isinstance(param, TensorParam) else param.kind
    return {"kind": kind, "name": param.name}


def _workspace(plan: CoresPlan) -> JsonValue:
    if plan.mix is None or not plan.mix.workspace:
        return None
    last = plan.mix.workspace[-1]
    return {"bytes": str(last.offset + last.bytes), "align": 512}


def _arg(param: TensorParam | ScalarParam, printer: CoresPrinter) -> JsonValue:
    if isinstance(param, ScalarParam):
        return {"name": param.name, "kind": "scalar", "dtype": param.dtype.name}
    return {
        "name": param.name,
        "kind": "tensor",
        "dtype": param.dtype.name,
        "shape": [_size(extent, printer) for extent in param.shape],
        "role": param.role,
    }


def _size(extent: Expr, printer: CoresPrinter) -> JsonValue:
    return int(extent.value) if isinstance(extent, Const) else printer(unnamed(extent))


def _json(value: object) -> JsonValue:
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def unnamed(expr: Expr) -> Expr:
    """The expression with constants as numbers: outside the text their names mean nothing."""
    from tile2c.transpile.lower.rewrite import rewrite

    def bare(part: Expr) -> Expr | None:
        if isinstance(part, Const) and part.name:
            return Const(dtype=part.dtype, value=part.value)
        if isinstance(part, Binary) and part.op == "-":
            a, b = unnamed(part.a), unnamed(part.b)
            if isinstance(a, Binary) and a.op == "+" and isinstance(b, Const):
                if isinstance(a.b, Const):  # x + 64 - 1
                    rest = int(a.b.value) - int(b.value)
                    if rest == 0:
                        return a.a
                    return replace(a, b=Const(dtype=b.dtype, value=rest))
            return replace(part, a=a, b=b)
        if isinstance(part, Binary) and part.op in ("//", "truncdiv") and isinstance(part.b, Const):
            if part.b.value == 1:
                return unnamed(part.a)
        return None

    return rewrite(expr, bare)
