"""Abacus, an invented vendor: warps of 16 lanes, a matrix unit of 8 x 8 x 8, a barrier of its own name.

reads   nothing; tile2c finds `TARGETS` through the entry point `tile2c.targets`
writes  nothing; templates/ and include/ are used by tile2c's renderer and emulator
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tile2c.transpile.targets.simt import Fragment, MatrixInstruction, SimtTarget
from tile2c.transpile.targets.spelling import C_TYPES, RESERVED, atomics, plain_functions
from tile2c.transpile.targets.target import Dialect

if TYPE_CHECKING:
    from tile2c.runtime.emulate.arch import Arch

_HERE = Path(__file__).parent

# Lane l holds row l % 8 of a (column l % 8 of b) at four k from l / 8 * 4; of c, row l % 8 at four columns.
_PART = Fragment(shape=(8, 8), rows=(("lane", 8, 1),), columns=(("value", 4, 1), ("lane", 2, 8)))

_A1 = SimtTarget(
    family="abacus",
    arch="a1",
    planner="simt",
    suffix=".abx",
    templates=(
        str(_HERE / "templates"),
        "simt",
    ),  # its own first, then those that all threads share
    dialect=Dialect(
        types=C_TYPES | {"float16": "half"},
        headers={"": ("abacus.h",)},
        functions=plain_functions(),
        to_float={"float16": "float"},
        from_float={"float16": "half"},
        reserved=RESERVED | {"block_meet", "lane_swap", "abacus_product"},
    ),
    compile="abxc --chip=a1 -O2 {file} -o {stem}.abo",
    module_suffix=".abo",
    proven="never run on silicon: the chip is invented",
    facts="this package",
    summary="Abacus A1, an example",
    lanes=16,
    shuffle="lane_swap_xor",
    shuffle_mask=None,
    shuffle_as={"float16": "float"},
    max_threads=512,
    static_shared=32 * 1024,
    max_shared=32 * 1024,
    banks=16,
    async_copy=(),
    matrix=(
        MatrixInstruction(
            name="product_8x8x8",
            m=8,
            n=8,
            k=8,
            inputs=("float16",),
            output="float32",
            a=_PART,
            b=_PART,
            c=_PART,
            operand="packed",
            load="lanes",
        ),
    ),
    atomics=atomics("float32"),
)

TARGETS = (_A1,)


def emulated(arch: str) -> Arch | None:
    """How the emulator runs texts for `arch`: the header that models it, lanes, shared memory."""
    from tile2c.runtime.emulate.arch import Arch

    if arch != "a1":
        return None
    return Arch(
        name=arch,
        header=_HERE / "include" / "model.h",
        folder=_HERE / "include",
        warp=16,
        static_shared=32 * 1024,
        total_shared=32 * 1024,
        macros=(("__ABACUS__", "1"),),
    )
