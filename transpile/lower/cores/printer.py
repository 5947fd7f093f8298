"""The plan as text, for `--emit plan`: choices, tiles with places, steps."""

from __future__ import annotations

from tile2c.transpile.ir import expr as e
from tile2c.transpile.lower.cores.plan import (
    AnyStep,
    Assign,
    Barrier,
    Branch,
    CopyIn,
    CopyOut,
    CoresPlan,
    CrossFlag,
    CubeCall,
    ElementOf,
    EndOfTurn,
    Leave,
    Local,
    Loop,
    Order,
    QueueStep,
    ReadElement,
    Step,
    Strides,
    TakeCopy,
    TensorRef,
    TileRef,
    VectorCall,
    WhileLoop,
    Word,
    WriteElement,
)
from tile2c.transpile.lower.plan import CCall, Element, Wide


def print_plan(plan: CoresPlan) -> str:
    """Readable, stable, not meant to be parsed."""
    lines = [f"plan {plan.name}"]
    lines += [f"  choice {c.name}: {c.value}  ({c.reason})" for c in plan.choices]
    if plan.unproven:
        lines.append(f"  dependences that only could not be disproved: {plan.unproven}")
    lines.append(f"  blocks {show(plan.blocks)}, grid {show(plan.grid)}")
    lines.append(f"  local memory {plan.local_bytes} bytes")
    for tile in plan.tiles:
        place = tile.place if tile.place == "work" else f"{tile.place} x {tile.depth}"
        note = tile.shape or tile.purpose
        size = f"{tile.rows} x {tile.columns}, pitch {tile.pitch}"
        lines.append(
            f"  tile {tile.name}: {tile.dtype} {size}, {tile.bytes} bytes, {place}  {note}"
        )
    lines += _steps(plan.setup, "  setup ")
    lines += [f"  {local.name} = {show(local.value)}" for local in plan.grid_locals]
    lines.append(f"  for each block {plan.tile.name}:")
    lines += [f"    {local.name} = {show(local.value)}" for local in plan.block_locals]
    lines += _steps(plan.body, "    ")
    if plan.mix is not None:
        for part in plan.mix.workspace:
            lines.append(f"  workspace {part.param}: {part.bytes} bytes, {part.purpose}")
        inner = print_plan(plan.mix.cube).rstrip("\n").split("\n")[1:]
        lines += ["  cube cores", *(f"  {line}" for line in inner)]
    return "\n".join(lines) + "\n"


def _steps(steps: tuple[Step, ...], indent: str) -> list[str]:
    lines: list[str] = []
    for step in steps:
        lines += [f"{indent}# {comment}" for comment in step.comments]
        remark = f"  # {step.remark}" if step.remark else ""
        head, inner = _step(step)
        lines.append(f"{indent}{head}{remark}")
        for name, body in inner:
            if name:
                lines.append(f"{indent}{name}")
            lines += _steps(body, indent + "  ")
    return lines


def _step(given: Step) -> tuple[str, list[tuple[str, tuple[Step, ...]]]]:
    step: AnyStep = given  # type: ignore[assignment]
    if isinstance(step, VectorCall):
        arguments = ", ".join(_argument(part) for part in step.arguments)
        return f"V {step.function} {_argument(step.dst)} <- {arguments}", []
    if isinstance(step, CubeCall):
        arguments = ", ".join(_argument(part) for part in step.arguments)
        return f"{step.unit} {step.function} {_argument(step.dst)} <- {arguments}", []
    if isinstance(step, CrossFlag):
        return f"{step.action} {step.flag} {step.unit}", []
    if isinstance(step, CopyIn):
        return f"MTE2 {_argument(step.dst)} <- {_region(step)}{_ahead(step)}", []
    if isinstance(step, CopyOut):
        sign = "+=" if step.adds else "<-"
        return f"MTE3 {_region(step)} {sign} {_argument(step.src)}{_ahead(step)}", []
    if isinstance(step, QueueStep):
        return f"{step.action} {step.tile}", []
    if isinstance(step, Order):
        return f"order {step.before} -> {step.after}", []
    if isinstance(step, Barrier):
        return f"barrier {step.unit}", []
    if isinstance(step, ReadElement):
        return f"S {step.name} = {_argument(step.src)}", []
    if isinstance(step, WriteElement):
        return f"S {_argument(step.dst)} = {show(step.value)}", []
    if isinstance(step, Local | Assign):
        return f"{step.name} = {show(step.value)}", []
    if isinstance(step, Loop):
        span = f"{show(step.start)}, {show(step.stop)}, {show(step.step)}"
        return f"for {step.var.name} in {span}", [("", step.body)]
    if isinstance(step, WhileLoop):
        return f"while {show(step.condition)}", [("", step.body)]
    if isinstance(step, Branch):
        sides = [("", step.then)] + ([("else", step.orelse)] if step.orelse else [])
        return f"if {show(step.condition)}", sides
    if isinstance(step, TakeCopy):
        return f"{step.tile} is copy {show(step.copy)}", []
    if isinstance(step, EndOfTurn):
        return "units meet", []
    assert isinstance(step, Leave)
    return step.kind, []


def _ahead(step: CopyIn | CopyOut) -> str:
    return " without waiting" if step.ahead else ""


def _region(step: CopyIn | CopyOut) -> str:
    size = f"{show(step.rows)} x {show(step.columns)}, pitch {show(step.pitch)}"
    return f"{step.tensor}[{show(step.offset)}] ({size})"


def _argument(part: object) -> str:
    if isinstance(part, TensorRef):
        return f"{part.handle}[{show(part.offset)}]"
    if isinstance(part, TileRef):
        return part.tile if part.offset is None else f"{part.tile}[{show(part.offset)}]"
    if isinstance(part, ElementOf):
        element = f"element {_argument(part.ref)}"
        return f"1 / {element}" if part.inverse else element
    if isinstance(part, Word):
        return part.text
    if isinstance(part, Strides):
        return "{" + ", ".join(map(str, part.values)) + "}"
    return show(part)


def show(expr: object) -> str:
    """An expression, fully bracketed."""
    if isinstance(expr, e.Const):
        return expr.name or str(expr.value)
    if isinstance(expr, e.Var):
        return expr.name
    if isinstance(expr, e.Binary | e.Compare | e.Logical):
        return f"({show(expr.a)} {expr.op} {show(expr.b)})"
    if isinstance(expr, e.Unary):
        return f"{expr.op} {show(expr.a)}"
    if isinstance(expr, e.Select):
        return f"({show(expr.condition)} ? {show(expr.a)} : {show(expr.b)})"
    if isinstance(expr, e.Cast):
        return f"{expr.dtype}({show(expr.a)})"
    if isinstance(expr, Element):
        return expr.array + "".join(f"[{show(part)}]" for part in expr.subscripts)
    if isinstance(expr, Wide):
        return f"wide({show(expr.a)})"
    if isinstance(expr, CCall):
        return f"{expr.function}({', '.join(map(show, expr.args))})"
    return str(expr)
