"""What a target supports, in words: for `--targets` and for docs/targets.md, from the descriptions alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile2c.transpile.targets.cores import CoresTarget
from tile2c.transpile.targets.simt import MatrixInstruction, SimtTarget
from tile2c.transpile.targets.target import Target

_HEAD = """\
# Targets

Written by `python -m tile2c.transpile.targets.describe` from the descriptions in `transpile/targets/`; a test
compares them. `tile2c --targets` prints the same.

A text of a target that has never run on silicon says so in its header. "Emulated" means equal to the
interpreter of the tile program, at sizes with tails, with races and memory checked. "Facts" says where
widths, limits, names and fragment maps come from; what no public source states is not used.
Every sample on every target: [samples-on-targets.md](samples-on-targets.md).
"""


def supports(target: Target) -> tuple[str, ...]:
    """Facts about the chip and its dialect, one a line: `matrix float16 -> float32 16x16x16`."""
    if isinstance(target, SimtTarget):
        return tuple(_threads(target))
    if isinstance(target, CoresTarget):
        return tuple(_cores(target))
    return ()


def _threads(target: SimtTarget) -> Iterator[str]:
    yield f"{target.group}s of {target.lanes}, at most {target.max_threads} threads a block"
    if target.matrix_lanes:
        yield f"matrix instructions of {target.matrix_lanes} threads"
    yield f"shared memory {target.max_shared // 1024} KB a block, {target.banks} banks"
    if target.bulk_copy:
        yield "copies to shared memory by tensor maps, and asynchronous ones of a thread"
    elif target.async_copy:
        sizes = ", ".join(map(str, target.async_copy))
        yield f"asynchronous copies to shared memory of {sizes} bytes"
    else:
        yield "copies to shared memory through registers, the next tile ahead where they suffice"
    if target.warpgroup_matrix:
        yield "matrix wgmma of 128 threads, beside the following"
    yield from _matrix(target.matrix)
    yield f"types {', '.join(_types(target))}"


def _matrix(instructions: Sequence[MatrixInstruction]) -> Iterator[str]:
    if not instructions:
        yield "matrix no instruction: products are plain multiply-adds"
    sizes: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for each in instructions:
        size = f"{each.m}x{each.n}x{each.k}{_really(each, instructions)}"
        sizes.setdefault((each.inputs, each.output), []).append(size)
    for (inputs, output), found in sizes.items():
        yield f"matrix {', '.join(inputs)} -> {output}: {', '.join(dict.fromkeys(found))}"


def _really(each: MatrixInstruction, others: Sequence[MatrixInstruction]) -> str:
    """What the chip does in the place of a product that it has no instruction of."""
    if each.several is not None:
        m, n, k = each.several
        return f" ({each.m * each.n * each.k // (m * n * k)} of {m}x{n}x{k})"
    worker = next((other for other in others if other.name == each.through), None)
    return "" if worker is None else f" (operands widened to {worker.inputs[0]})"


def _cores(target: CoresTarget) -> Iterator[str]:
    memory = target.words.memory
    if target.vectors == "counts":
        yield f"{memory} {target.local_bytes // 1024} KB a core for tiles"
        yield "vector calls at any address, of any count"
    else:
        yield f"{target.cores} cores, {target.local_bytes // 1024} KB of local memory each"
        yield f"tiles aligned to {target.block_bytes} bytes, repeats of {target.repeat_bytes}"
    if target.order == "stages":
        yield "copies a turn ahead of the work, waits once a turn"
    if target.cube is not None:
        cube = target.cube
        sizes = ((cube.l1_bytes, "L1"), (cube.l0_bytes, "L0A and L0B"), (cube.l0c_bytes, "L0C"))
        rooms = ", ".join(f"{name} {size // 1024} KB" for size, name in sizes)
        pairs = ", ".join(f"{source} -> {sums}" for source, sums in cube.products.items())
        yield f"{cube.cores} cube cores, {cube.vector_cores} vector cores beside each: {rooms}"
        yield f"matrix {pairs}: 16x16 sums of fractals of {cube.block_bytes} bytes a row"
    if target.weights is not None:
        unit = target.weights
        pairs = ", ".join(f"{source} -> {sums}" for source, sums in unit.products.items())
        yield f"matrix {pairs}: right operand in {unit.memory}, {unit.bytes // 1024} KB a core"
        yield f"sums over multiples of {unit.inner_bytes} bytes"
    yield f"types {', '.join(_types(target))}"


def _types(target: Target) -> list[str]:
    return [name for name in target.dialect.types if "x" not in name]


def document(targets: Sequence[Target]) -> str:
    """docs/targets.md: a table of what is proven how, then each family."""
    rows = ["| target | silicon | emulated | compiled |", "| --- | --- | --- | --- |"]
    rows += [
        f"| `{t.name}` | {t.proven} | {t.emulated or 'no'} | {t.compiled or 'no'} |"
        for t in targets
    ]
    parts = [_HEAD, "\n".join(rows) + "\n"]
    for family in dict.fromkeys(target.family for target in targets):
        parts.append(f"## {family}\n")
        for target in (each for each in targets if each.family == family):
            lines = [f"### {target.name}", "", f"{target.summary}.", ""]
            lines += [f"- {line}" for line in supports(target)]
            lines += [f"- text `{target.suffix}`, compiled by `{target.compile}`"]
            lines += [f"- facts: {target.facts}"]
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    from pathlib import Path

    from tile2c.transpile.targets.registry import FAMILIES, all_targets

    ours = [target for target in all_targets() if target.family in FAMILIES]
    path = Path(__file__).resolve().parents[2] / "docs" / "targets.md"
    path.write_text(document(ours), encoding="utf-8")
