"""Iluvatar CoreX: CUDA's spelling on waves of 64. Facts: the vendor's public compiler back ends.

Its matrix builtins and copies to shared memory are not documented in C, so products are plain
arithmetic and copies pass through registers. Third parties call one builtin, whose fragment maps the
vendor's compiler has: ivcore11_mad is the same chip with it, for those who want to try. How to compile a
module alone is not documented either: the command makes a library whose kernels are launched through CUDA's
run-time functions.
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.targets.host import Host
from tile2c.transpile.targets.simt import Fragment, MatrixInstruction, SimtTarget
from tile2c.transpile.targets.spelling import C_TYPES, RESERVED, atomics, plain_functions
from tile2c.transpile.targets.target import Dialect

_KB = 1024

# CUDA's run-time interface; that its structs are named as CUDA's is inferred from programs which declare
# them and are built for both.
_HOST = Host(
    api="cuda",
    headers=("cuda_runtime.h",),
    stream="CUstream_st",
    structs={"float16": "__half", "bfloat16": "__nv_bfloat16"},
    shared_limit="cudaDevAttrMaxSharedMemoryPerBlockOptin",
    kernel="__global__ void",
    compile="clang++ -x cuda --cuda-gpu-arch=ivcore11 --cuda-path=$COREX -O2 -std=c++17 -fPIC "
    "-c {file}",
    together="clang++ -x cuda --cuda-gpu-arch=ivcore11 --cuda-path=$COREX -O3 -std=c++17 -fPIC "
    "-c {file}; link both objects with cudart",
    default_shared=48 * _KB,
)

_PLAIN = SimtTarget(
    family="corex",
    makers=("iluvatar", "tianshu"),
    arch="ivcore11",
    planner="simt",
    suffix=".cu",
    templates=("simt",),
    dialect=Dialect(
        types=C_TYPES | {"float16": "half", "bfloat16": "__nv_bfloat16"},
        headers={
            "float16": ("cuda_fp16.h",),
            "bfloat16": ("cuda_bf16.h",),
        },
        functions=plain_functions(),
        to_float={"float16": "__half2float", "bfloat16": "__bfloat162float"},
        from_float={"float16": "__float2half", "bfloat16": "__float2bfloat16"},
        reserved=RESERVED,
    ),
    compile="clang++ -x cuda --cuda-gpu-arch=ivcore11 --cuda-path=$COREX -O3 -std=c++17 -fPIC -shared "
    "{file} -o {stem}.so",
    module_suffix=".so",
    proven="never run on silicon",
    emulated="the samples",
    compiled="clang 22 for AMD's chips with stub headers: types and syntax",
    facts="vendor's public source; masks of 64 bits, compile command, 32 banks inferred",
    summary="Iluvatar BI-V150: plain arithmetic, waves of 64",
    lanes=64,
    group="warp",
    shuffle="__shfl_xor_sync",
    shuffle_mask="0xffffffffffffffffull",
    static_shared=48 * _KB,
    max_shared=128 * _KB,
    async_copy=(),
    atomics=atomics("float32"),
    swap_small="compare_swap({word}, {seen}, {next})",
    host=_HOST,
)

# Neighbours in one register are rows of a, but k of b.
_ROWS = Fragment(
    shape=(16, 16),
    rows=(("value", 2, 1), ("lane", 4, 16), ("value", 2, 2)),
    columns=(("lane", 16, 1),),
)
_COLUMNS = Fragment(shape=(16, 16), rows=_ROWS.columns, columns=_ROWS.rows)
_SUMS = Fragment(
    shape=(16, 16), rows=(("lane", 4, 16), ("value", 4, 1)), columns=(("lane", 16, 1),)
)
_MAD = MatrixInstruction(
    name="mad_16x16x16",
    m=16,
    n=16,
    k=16,
    inputs=("float16",),
    output="float32",
    a=_ROWS,
    b=_COLUMNS,
    c=_SUMS,
    operand="packed",
    load="lanes",
)

TARGETS: tuple[SimtTarget, ...] = (
    _PLAIN,
    replace(
        _PLAIN,
        arch="ivcore11_mad",
        templates=("corex", "simt"),
        summary="Iluvatar BI-V150 with its matrix builtin of float16, waves of 64",
        facts="third parties: the builtin's name; vendor's public compiler: its fragment maps",
        compiled="",
        matrix=(_MAD,),
    ),
)
