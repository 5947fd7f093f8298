"""The text of a kernel for cores and its manifest entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tile2c.transpile.ir.expr import Const
from tile2c.transpile.lower.cores.plan import (
    WEIGHTS,
    CopyIn,
    CopyOut,
    CoresPlan,
    CubeCall,
    Order,
    ScalarParam,
    Step,
    Strides,
    TensorParam,
    Tile,
    VectorCall,
    WorkTensor,
    bodies,
)
from tile2c.transpile.lower.rename import entry_name
from tile2c.transpile.output.generated import GeneratedKernel
from tile2c.transpile.render.cores_manifest import host_blocks, manifest_of, ordered_params
from tile2c.transpile.render.cores_nan import nan_lines
from tile2c.transpile.render.cores_steps import WIDTH, CoresPrinter, StepPrinter
from tile2c.transpile.render.engine import fill
from tile2c.transpile.render.finish import comment, finish, head, title
from tile2c.transpile.render.header import DIGEST
from tile2c.transpile.render.marks import Marks
from tile2c.transpile.wording import listed

if TYPE_CHECKING:
    from tile2c.transpile.stage import NormalKernel
    from tile2c.transpile.targets.cores import CoresTarget


def render(
    plan: CoresPlan,
    target: CoresTarget,
    kernel: NormalKernel,
    *,
    several: bool = False,
    line_info: bool = False,
    again: str = "",
) -> GeneratedKernel:
    """Fills the templates with the plan; the digest line stays open.

    `several`: exported symbols end in the architecture; `line_info`: with `#line` directives.
    """
    name = entry_name(plan.name, target.dialect.reserved)
    symbol = f"{name}_{target.arch}" if several else name
    printer = CoresPrinter(target.dialect)
    marks = Marks()
    entry = finish(_entry(plan, symbol, target, printer, marks))
    helpers = [
        finish(fill(target.templates, f"helpers/{name}.j2"))
        for name in _helpers(_all_steps(plan), target)
    ]
    if "infinity" in entry:
        helpers = ["constexpr float infinity = __builtin_huge_valf();", *helpers]
    text = fill(
        target.templates,
        "kernel.j2",
        head={
            "title": title(plan.name, plan.summary),
            "lines": head(_head_lines(plan, target, kernel, printer, again)),
            "comments": [line for line in plan.comments if line.strip() != plan.summary],
        },
        headers=target.dialect.headers[""],
        constants=[*(_constant(constant, printer) for constant in plan.constants), *_flags(plan)],
        helpers=helpers,
        entry=entry,
    )
    plain, origins = marks.resolve(text + "\n", line_directives=line_info)
    return GeneratedKernel(
        name=plan.name,
        target=target.name,
        suffix=target.suffix,
        text=plain,
        manifest=manifest_of(plan, symbol, target, kernel, printer),
        origins=origins,
    )


def _head_lines(
    plan: CoresPlan,
    target: CoresTarget,
    kernel: NormalKernel,
    printer: CoresPrinter,
    again: str,
) -> list[str]:
    from tile2c import __version__

    file = f"{plan.name}{target.suffix}"
    source = PurePosixPath(kernel.source_file).name
    sizes = listed(plan.sizes)
    lines = [
        f"from     {source} by tile2c {__version__}",
        f"target   {target.name} ({target.proven})",
        f"again    {again}",
        f"compile  {target.compile.format(file=file, stem=plan.name)}",
        f"launch   {_launch_note(plan, target, printer)}",
    ]
    if sizes:
        verb = "is" if len(plan.sizes) == 1 else "are"
        lines.append(f"sizes    {sizes} {verb} free")
    used = f"{plan.local_bytes} of {target.local_bytes} bytes of a core's {target.words.memory}"
    lines.append(f"memory   {plan.memory or used}")
    lines += nan_lines(_all_steps(plan), plan.tiles, target)
    lines.append(f"text     sha256 {DIGEST}  (edit freely: `tile2c --merge` keeps your changes)")
    return lines


def _launch_note(plan: CoresPlan, target: CoresTarget, printer: CoresPrinter) -> str:
    blocks = printer(host_blocks(plan))
    words = target.words
    what = words.cores
    if plan.mix is not None:
        beside = "both its vector cores" if plan.mix.vector_cores == 2 else "a vector core"
        what = f"groups of a cube core and {beside}"
    elif plan.side == "cube":
        what = f"cube {what}"
    if plan.persistent:
        return f"{plan.cores or target.cores} {what}, or {words.tasks}: at most {blocks} have work"
    return f"{blocks} {what}"


def _all_steps(plan: CoresPlan) -> tuple[Step, ...]:
    cube = plan.mix.cube if plan.mix is not None else None
    return (*plan.setup, *plan.body, *((*cube.setup, *cube.body) if cube is not None else ()))


def _flags(plan: CoresPlan) -> list[str]:
    """The ids of flags between a cube core and its vector cores."""
    flags = plan.mix.flags if plan.mix is not None else ()
    return [f"constexpr uint16_t {flag} = {number};" for number, flag in enumerate(flags)]


def _constant(constant: Const, printer: CoresPrinter) -> str:
    bare = Const(dtype=constant.dtype, value=constant.value)
    return f"constexpr {printer.type_name(constant.dtype)} {constant.name} = {printer(bare)};"


def _helpers(steps: tuple[Step, ...], target: CoresTarget) -> list[str]:
    """Those in use, in a fixed order."""
    found: set[str] = set()

    def visit(body: tuple[Step, ...]) -> None:
        for step in body:
            if isinstance(step, CopyIn | CopyOut):
                word = "copy_in" if isinstance(step, CopyIn) else "copy_out"
                found.add(f"{word}_row" if step.row else word)
            elif isinstance(step, Order):
                found.add("order")
            elif isinstance(step, CubeCall):
                found.update(_cube_helpers(step.function))
            elif isinstance(step, VectorCall):
                found.add(target.spelling.get(step.function, step.function))
            for inner in bodies(step):
                visit(inner)

    visit(steps)
    return [name for name in target.helpers if name in found]


_CALLED = {
    "copy_fractals": ("whole",),
    "copy_row_blocks": ("whole", "copy_fractals"),
    "load_left_blocks": ("whole",),
    "add_sums": ("store_sums",),
}


def _cube_helpers(function: str) -> set[str]:
    """A helper and those it calls."""
    name = function.partition("<")[0]
    return {name, *_CALLED.get(name, ())}


# ---- the kernel


def _entry(
    plan: CoresPlan,
    symbol: str,
    target: CoresTarget,
    printer: CoresPrinter,
    marks: Marks,
) -> str:
    kind, why = _KINDS[plan.side if plan.mix is None else f"mix {plan.mix.vector_cores}"]
    common = {
        "name": symbol,
        "kind": kind,
        "why": why,
        "params": _params(plan, target, printer),
        "tensors": _tensors(plan, printer),
    }
    if plan.mix is None:
        side = _side(plan, (), target, printer, marks, WIDTH - 4)
        return fill(target.templates, "entry.j2", side=side, **common)
    inner = WIDTH - 8
    return fill(
        target.templates,
        "entry_mix.j2",
        cube=_side(
            plan.mix.cube, plan.mix.cube_ends, target, printer, marks, inner, "GetBlockIdx()"
        ),
        vector=_side(
            plan, plan.mix.vector_ends, target, printer, marks, inner, _group(plan.mix.vector_cores)
        ),
        **common,
    )


def _group(vector_cores: int) -> str:
    """The number of the cube core that a vector core stands beside."""
    return "GetBlockIdx()" if vector_cores == 1 else f"GetBlockIdx() / {vector_cores}"


def _tensors(plan: CoresPlan, printer: CoresPrinter) -> list[dict[str, str]]:
    """Each tensor's parameter and what the body calls it."""
    found = [
        {"name": param.name, "handle": param.handle, "type": printer.type_name(param.dtype)}
        for param in plan.params
        if isinstance(param, TensorParam) and param.used
    ]
    for part in plan.mix.workspace if plan.mix is not None else ():
        kind = printer.type_name(part.dtype)
        found.append({"name": part.param, "handle": part.handle, "type": kind})
    return found


def _side(
    plan: CoresPlan,
    ends: tuple[Step, ...],
    target: CoresTarget,
    printer: CoresPrinter,
    marks: Marks,
    width: int,
    core: str = "",
) -> str:
    """What one kind of cores does. `core`: the number of its cube core, for a mix of both kinds."""
    steps = StepPrinter(target, printer, {t.name: t for t in plan.tiles}, marks)
    sizes = {c.name: int(c.value) for c in plan.constants if c.name and c.dtype.is_integer}
    looped = 4 if plan.persistent and not plan.staged else 0
    body = steps.block((*plan.block_locals, *plan.body), width - looped)
    blocks = fill(
        target.templates,
        _way(plan),
        comments=_launch_comments(plan, target, width),
        tile=plan.tile.name if plan.persistent or _reads_tile(plan) else "",
        task="core" if core else target.words.task,
        blocks=printer(plan.last_block),
        sizes=steps.block(plan.grid_locals, width),
        body=body,
    )
    return fill(
        target.templates,
        "side.j2",
        queued=[_queued(tile, printer, sizes) for tile in plan.tiles if tile.place != "work"],
        kept=[_kept(tile, printer, sizes) for tile in plan.tiles if tile.place == "work"],
        core=core,
        setup=steps.block(plan.setup, width),
        blocks=blocks,
        ends=steps.block(ends, width),
    )


def _way(plan: CoresPlan) -> str:
    """The template that brings blocks to cores."""
    if plan.staged:
        return "blocks_staged.j2"
    return "blocks_in_turn.j2" if plan.persistent else "block_each.j2"


_KINDS = {
    "vector": ("KERNEL_TYPE_AIV_ONLY", "vector cores: nothing here needs the cube"),
    "cube": ("KERNEL_TYPE_AIC_ONLY", "cube cores: nothing here needs the vector unit"),
    "mix 1": ("KERNEL_TYPE_MIX_AIC_1_1", "each cube core with a vector core beside it"),
    "mix 2": ("KERNEL_TYPE_MIX_AIC_1_2", "each cube core with both its vector cores"),
}


def _launch_comments(plan: CoresPlan, target: CoresTarget, width: int) -> list[str]:
    """Lines of the comment above the loop over blocks, without their `// `."""
    texts = list(plan.launch_comments)
    if plan.persistent:
        texts.append(f"each core takes every {target.words.stride}-th block")
    if target.words.strides and _any_call(plan, _has_strides):
        texts.append(target.words.strides)
    return [line.removeprefix("// ") for text in texts for line in comment(text, width).split("\n")]


def _any_call(plan: CoresPlan, holds: Callable[[VectorCall], bool]) -> bool:
    def found(steps: tuple[Step, ...]) -> bool:
        return any(
            (isinstance(step, VectorCall) and holds(step))
            or any(found(part) for part in bodies(step))
            for step in steps
        )

    return found((*plan.setup, *plan.body))


def _has_strides(step: VectorCall) -> bool:
    return any(isinstance(part, Strides) for part in step.arguments)


def _reads_tile(plan: CoresPlan) -> bool:
    from tile2c.transpile.lower.cores.accesses import variables_of

    return any(var == plan.tile for var in variables_of((*plan.block_locals, *plan.body)))


def _params(plan: CoresPlan, target: CoresTarget, printer: CoresPrinter) -> list[dict[str, str]]:
    params = ordered_params(plan)
    found = []
    for place, param in enumerate(params):
        remark = ""
        kind = printer.type_name(param.dtype)
        if isinstance(param, ScalarParam):
            declaration = f"{kind} {param.name}"
        else:
            shape = ", ".join(printer(extent) for extent in param.shape)
            said = "{type}" in target.words.parameter  # by the declaration
            remark = f"  // [{shape}]" if said else f"  // {kind} [{shape}]"
            name = param.name if isinstance(param, TensorParam) else param.param
            const = "const " if isinstance(param, TensorParam) and param.role == "in" else ""
            declaration = target.words.parameter.format(name=name, type=kind, const=const)
        if isinstance(param, WorkTensor):
            remark += f", {param.purpose}"
        end = ") {" if place == len(params) - 1 else ","
        found.append({"declaration": declaration, "end": end, "remark": remark})
    return found


_WAYS = {
    "VECIN": "filled by MTE2 for V",
    "VECOUT": "filled by V for MTE3",
    "A1": "in L1, filled by MTE2 for MTE1",
    "B1": "in L1, filled by MTE2 for MTE1",
    "C1": "in L1, filled by MTE2 for MTE1",
    "A2": "in L0A, filled by MTE1 for M",
    "B2": "in L0B, filled by MTE1 for M",
    "C2": "in the bias table, filled by MTE1 for M",
    "CO1": "in L0C, filled by M for FIX",
}


def _elements(tile: Tile, sizes: Mapping[str, int]) -> str:
    """How many a tile has: the product of its extents by name, where it has no more than these."""
    names = tile.shape.strip("[]").split(", ")
    extents = [sizes.get(name, int(name) if name.isdigit() else 0) for name in names]
    count = tile.bytes // tile.dtype.bytes
    named = any(name in sizes for name in names)
    return " * ".join(names) if named and prod(extents) == count else str(count)


def _bytes(tile: Tile, printer: CoresPrinter, sizes: Mapping[str, int]) -> str:
    elements = _elements(tile, sizes)
    if elements.isdigit():
        return str(tile.bytes)
    return f"{elements} * sizeof({printer.type_name(tile.dtype)})"


def _queued(tile: Tile, printer: CoresPrinter, sizes: Mapping[str, int]) -> dict[str, object]:
    copies = ", double buffered" if tile.depth > 1 else ""
    way = _WAYS[tile.position]
    shape = f" {tile.shape}" if tile.shape else ""
    return {
        "position": tile.position,
        "queue": f"{tile.name}_queue",
        "depth": tile.depth,
        "bytes": _bytes(tile, printer, sizes),
        "name": tile.name,
        "type": printer.type_name(tile.dtype),
        "count": _elements(tile, sizes),
        "shape": tile.shape,
        "remark": f"{tile.name}: {printer.type_name(tile.dtype)}{shape}, {way}{copies}",
    }


def _kept(tile: Tile, printer: CoresPrinter, sizes: Mapping[str, int]) -> dict[str, object]:
    return {
        "position": tile.position,
        "buffer": f"{tile.name}_buffer",
        "bytes": _bytes(tile, printer, sizes),
        "name": tile.name,
        "type": printer.type_name(tile.dtype),
        "count": _elements(tile, sizes),
        "about": tile.shape or tile.purpose,
        "weights": tile.position == WEIGHTS,
        "remark": f"{printer.type_name(tile.dtype)} {tile.shape}" if tile.shape else tile.purpose,
    }
