"""MetaX MACA. Facts: the vendor's public templates and samples.

Copies pass through registers: the asynchronous ones are reported unreliable where the destination is
swizzled. Registers of one thread are not documented; the number here is what its ports assume.
"""

from __future__ import annotations

from tile2c.transpile.targets.host import Host
from tile2c.transpile.targets.simt import Fragment, MatrixInstruction, SimtTarget
from tile2c.transpile.targets.spelling import C_TYPES, RESERVED, atomics, plain_functions
from tile2c.transpile.targets.target import Dialect

_DIALECT = Dialect(
    types=C_TYPES | {"float16": "half", "bfloat16": "maca_bfloat16"},
    headers={
        "": ("mc_runtime.h",),
        "float16": ("common/maca_fp16.h",),
        "bfloat16": ("common/maca_bfloat16.h",),
    },
    functions=plain_functions(),
    to_float={"float16": "float", "bfloat16": "float"},
    from_float={"float16": "__float2half", "bfloat16": "__float2bfloat16"},
    reserved=RESERVED,
)

# Lane l holds row l % 16 of a (column l % 16 of b) at four neighbouring k from l / 16 * 4. With b as the
# first operand, as the vendor's kernels have it, it gets four neighbours of row l % 16 of c.
_OPERAND = Fragment(
    shape=(16, 16), rows=(("lane", 16, 1),), columns=(("value", 4, 1), ("lane", 4, 16))
)
# Two instructions take operands of 16 bytes a lane.
_WIDE = Fragment(
    shape=(16, 32), rows=(("lane", 16, 1),), columns=(("value", 8, 1), ("lane", 4, 16))
)


def _mma(name: str, kind: str, total: str, operand: Fragment) -> MatrixInstruction:
    return MatrixInstruction(
        name=name,
        m=16,
        n=16,
        k=operand.shape[1],
        inputs=(kind,),
        output=total,
        a=operand,
        b=operand,
        c=_OPERAND,
        operand="packed",
        load="lanes",
    )


_KB = 1024

# Names: the vendor's samples and its port of CUTLASS, which asks for leave from 48 KB on. What struct
# stands behind streams and 16-bit floats is in no public header.
_HOST = Host(
    api="mc",
    errors="MACA's runtime",
    headers=("mc_runtime.h",),
    shared_limit="mcDeviceAttributeMaxSharedMemoryPerBlock",
    kernel="__global__ void",
    compile="mxcc -x maca --offload-arch=xcore1000 -O2 -std=c++17 -I$MACA_PATH/include -c {file}",
    together="mxcc -x maca --offload-arch=xcore1000 -O3 -std=c++17 -I$MACA_PATH/include -c {file}; "
    "link both objects with mcruntime",
    default_shared=48 * _KB,
)

TARGETS: tuple[SimtTarget, ...] = (
    SimtTarget(
        family="maca",
        makers=("metax", "muxi"),
        arch="xcore1000",
        planner="simt",
        suffix=".maca",
        templates=("maca", "simt"),
        dialect=_DIALECT,
        compile="mxcc -x maca -device-obj --offload-arch=xcore1000 -O3 -std=c++17 -I$MACA_PATH/include "
        "{file} -o {stem}.mcbin",
        module_suffix=".mcbin",
        proven="never run on silicon",
        emulated="the samples",
        compiled="clang 22 for AMD's chips with stub headers: types and syntax",
        facts="vendor's public source: names, fragment maps; registers and 32 banks assumed",
        summary="MetaX C500: mma, waves of 64",
        lanes=64,
        group="wave",
        shuffle="__shfl_xor_sync",
        shuffle_mask="~0ull",
        shuffle_as={"float16": "float", "bfloat16": "float"},
        static_shared=64 * _KB,
        max_shared=64 * _KB,
        async_copy=(),
        matrix=(  # the first whose k divides the tile's is taken
            _mma("mma_16x16x16_twice", "float16", "float32", _WIDE),
            _mma("mma_16x16x16_twice", "bfloat16", "float32", _WIDE),
            _mma("mma_16x16x16", "float16", "float32", _OPERAND),
            _mma("mma_16x16x16", "bfloat16", "float32", _OPERAND),
            _mma("mma_16x16x16", "int8", "int32", _OPERAND),
        ),
        atomics=atomics("float32", "float16", "bfloat16"),
        host=_HOST,
    ),
)
