"""Hygon DCU: HIP's dialect with matrix instructions of its own.

Facts: the vendor's public ports of operator libraries (builtins and fragment maps). The copies of gfx936
that go to LDS directly are documented nowhere, so copies pass through registers.
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.targets.hip import TARGETS as HIP
from tile2c.transpile.targets.simt import Fragment, MatrixInstruction, SimtTarget

# Lane l holds row l % 16 of a (column l % 16 of b) at neighbouring k. The helpers hand b over first: of
# c a lane then gets column l % 16 in rows l / 16, l / 16 + 4, ..., and 16 lanes write one row together.
_HALVES = Fragment(
    shape=(16, 16), rows=(("lane", 16, 1),), columns=(("value", 4, 1), ("lane", 4, 16))
)
_WIDE = Fragment(
    shape=(16, 32), rows=(("lane", 16, 1),), columns=(("value", 8, 1), ("lane", 4, 16))
)
_SUMS = Fragment(
    shape=(16, 16), rows=(("lane", 4, 16), ("value", 4, 1)), columns=(("lane", 16, 1),)
)


def _mmac(name: str, kind: str, total: str, operand: Fragment) -> MatrixInstruction:
    return MatrixInstruction(
        name=name,
        m=16,
        n=16,
        k=operand.shape[1],
        inputs=(kind,),
        output=total,
        a=operand,
        b=operand,
        c=_SUMS,
        operand="vector",
        load="plain",
    )


_MMAC = (  # the first whose k divides the tile's is taken
    _mmac("mmac_16x16x16_twice", "float16", "float32", _WIDE),
    _mmac("mmac_16x16x16_twice", "bfloat16", "float32", _WIDE),
    _mmac("mmac_16x16x16", "float16", "float32", _HALVES),
    _mmac("mmac_16x16x16", "bfloat16", "float32", _HALVES),
    _mmac("mmac_16x16x32", "int8", "int32", _WIDE),
)


def _target(arch: str, summary: str, matrix: tuple[MatrixInstruction, ...]) -> SimtTarget:
    like = next(target for target in HIP if target.arch == "gfx90a")
    assert like.host is not None
    return replace(
        like,
        host=replace(like.host, together=like.host.together.replace(like.arch, arch)),
        family="dcu",
        makers=("hygon",),
        arch=arch,
        templates=("dcu", *like.templates),
        compile=f"hipcc --genco --offload-arch={arch} -O3 -std=c++17 {{file}} -o {{stem}}.hsaco",
        summary=summary,
        compiled="clang 22 for AMD's chips, matrix builtins replaced: types and syntax",
        facts="vendor's public source: names, fragment maps" if matrix else "third parties",
        matrix=matrix,
    )


TARGETS: tuple[SimtTarget, ...] = (
    _target("gfx936", "Hygon DCU, BW class: mmac, waves of 64", _MMAC),
    _target("gfx928", "Hygon DCU: mmac, waves of 64", _MMAC),
    _target("gfx926", "Hygon DCU, K100 LC class: no matrix instruction known, waves of 64", ()),
)
