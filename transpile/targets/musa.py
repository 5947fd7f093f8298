"""Moore Threads MUSA. Facts: the vendor's public templates and samples (mutlass, the TileLang port).

Shuffles stay inside 32 lanes on every chip, as the vendor's own reductions have it, although the warps of
mp_22 have 128. Copies pass through registers: those to shared memory take addresses of a form that
differs between releases of the compiler.
"""

from __future__ import annotations

from tile2c.transpile.targets.host import Host
from tile2c.transpile.targets.simt import Fragment, MatrixInstruction, SimtTarget
from tile2c.transpile.targets.spelling import (
    C_TYPES,
    RESERVED,
    atomics,
    plain_functions,
    with_bytes_as_floats,
)
from tile2c.transpile.targets.target import Dialect

_DIALECT = Dialect(
    types=C_TYPES | {"float16": "half", "bfloat16": "__mt_bfloat16"},
    headers={
        "": ("musa_runtime.h",),
        "float16": ("musa_fp16.h",),
        "bfloat16": ("musa_bf16.h",),
    },
    functions=plain_functions(),  # mp_22 lacks some of half: all of them go through float
    to_float={"float16": "__half2float", "bfloat16": "__bfloat162float"},
    from_float={"float16": "__float2half", "bfloat16": "__float2bfloat16"},
    reserved=RESERVED,
)

# Names: the vendor's ports and extensions of PyTorch. Its driver wants leave for any dynamic shared
# memory. What struct stands behind 16-bit floats differs between releases.
_HOST = Host(
    api="musa",
    headers=("musa_runtime.h",),
    stream="MUstream_st",
    shared_limit="musaDevAttrMaxSharedMemoryPerBlockOptin",
    kernel="__global__ void",
    compile="mcc -x musa --offload-arch={arch} -O2 -std=c++17 -fPIC -c {{file}}",
    together="mcc --offload-arch={arch} -O3 -std=c++17 -fPIC -c {{file}}; "
    "link both objects with musart",
    default_shared=0,
)

# mp_22: fmma of 128 threads, both operands k-major (their "TN" form).
_FMMA_HALVES = Fragment(
    shape=(32, 16),
    rows=(("lane", 16, 4), ("value", 2, 2)),
    columns=(("value", 2, 1), ("lane", 4, 1), ("lane", 2, 64)),
)
# The forms of 16 bits whose operands run along m or n: tiles that have k across their rows.
_FMMA_TURNED = Fragment(
    shape=(32, 16),
    rows=(("value", 2, 1), ("lane", 8, 1), ("value", 2, 2)),
    columns=(("lane", 16, 8),),
)
_FMMA_BYTES = Fragment(
    shape=(32, 32),
    rows=(("lane", 16, 4), ("value", 2, 4)),
    columns=(("value", 4, 1), ("lane", 4, 1), ("lane", 2, 64)),
)
_FMMA_SUMS = Fragment(
    shape=(32, 32),
    rows=(("lane", 4, 8), ("lane", 2, 64), ("value", 4, 2)),
    columns=(("lane", 8, 1), ("lane", 2, 32), ("value", 2, 1)),
)

# 8-bit floats of mp_31, as the public formats have them (OCP). The vendor's header of them is not public,
# so they are kept as their bits.
_FP8 = ("float8_e4m3fn", "float8_e5m2")

# mp_31: wmma of 32 lanes, both operands k-major.
_WMMA_HALVES = Fragment(
    shape=(16, 16),
    rows=(("lane", 8, 4), ("value", 2, 4)),
    columns=(("value", 2, 1), ("lane", 4, 1), ("value", 2, 2)),
)
_WMMA_TURNED = Fragment(
    shape=(16, 16),
    rows=(("value", 2, 1), ("lane", 4, 1), ("value", 2, 2)),
    columns=(("lane", 8, 4), ("value", 2, 4)),
)
_WMMA_BYTES = Fragment(
    shape=(16, 32),
    rows=(("lane", 8, 4), ("value", 2, 8)),
    columns=(("value", 4, 1), ("lane", 4, 1), ("value", 2, 4)),
)
_WMMA_SUMS = Fragment(
    shape=(16, 16),
    rows=(("lane", 4, 8), ("value", 4, 2)),
    columns=(("lane", 8, 1), ("value", 2, 1)),
)


def _instruction(
    name: str,
    kinds: str,
    total: str,
    operand: Fragment,
    sums: Fragment,
    turned: Fragment | None = None,
) -> MatrixInstruction:
    """Operands of one of `kinds` each: several can be mixed."""
    return MatrixInstruction(
        name=name,
        m=sums.shape[0],
        n=sums.shape[1],
        k=operand.shape[1],
        inputs=tuple(kinds.split()),
        output=total,
        a=operand,
        b=operand,
        c=sums,
        operand="packed",
        load="lanes",
        a_turned=turned,
        b_turned=turned,
    )


_FMMA = (
    _instruction("fmma_m32n32k16", "float16", "float32", _FMMA_HALVES, _FMMA_SUMS, _FMMA_TURNED),
    _instruction("fmma_m32n32k16", "bfloat16", "float32", _FMMA_HALVES, _FMMA_SUMS, _FMMA_TURNED),
    _instruction("imma_m32n32k32", "int8", "int32", _FMMA_BYTES, _FMMA_SUMS),
)
_WMMA = (
    _instruction("wmma_m16n16k16", "float16", "float32", _WMMA_HALVES, _WMMA_SUMS, _WMMA_TURNED),
    _instruction("wmma_m16n16k16", "bfloat16", "float32", _WMMA_HALVES, _WMMA_SUMS, _WMMA_TURNED),
    _instruction("wmma_m16n16k32", "int8", "int32", _WMMA_BYTES, _WMMA_SUMS),
    _instruction("wmma_m16n16k32", "uint8", "int32", _WMMA_BYTES, _WMMA_SUMS),
    _instruction("wmma_m16n16k32", " ".join(_FP8), "float32", _WMMA_BYTES, _WMMA_SUMS),
)

_KB = 1024


def _target(
    arch: str,
    summary: str,
    *,
    shared: int,
    register_file: int = 65536,
    matrix: tuple[MatrixInstruction, ...] = (),
    matrix_lanes: int = 0,
    lanes_meet: bool = True,
) -> SimtTarget:
    return SimtTarget(
        family="musa",
        makers=("moorethreads", "mthreads", "moore threads"),
        arch=arch,
        planner="simt",
        suffix=".mu",
        templates=("musa", "simt"),
        dialect=with_bytes_as_floats(_DIALECT, *_FP8) if arch == "mp_31" else _DIALECT,
        compile=f"mcc --cuda-device-only --offload-arch={arch} -O3 -std=c++17 {{file}} -o {{stem}}.mubin",
        module_suffix=".mubin",
        proven="never run on silicon",
        emulated="the samples",
        compiled="nvcc 13 with stub headers: types and syntax",
        facts="vendor's public source: names, fragment maps; 32 banks assumed",
        summary=summary,
        lanes=32,
        register_file=register_file,
        matrix_lanes=matrix_lanes,
        shuffle="__shfl_xor_sync",
        shuffle_mask="0xffffffffu",
        lanes_meet="mask" if lanes_meet else "",
        static_shared=min(shared, 48 * _KB),
        max_shared=shared,
        async_copy=(),
        matrix=matrix,
        atomics=atomics("float32", "float16", "bfloat16"),
        swap_small=(
            "atomicCAS({word}, {seen}, {next})"
            if arch == "mp_31"
            else "compare_swap({word}, {seen}, {next})"
        ),
        host=_HOST.for_arch(arch),
    )


TARGETS: tuple[SimtTarget, ...] = (
    _target(
        "mp_31",
        "S5000: wmma, warps of 32",
        shared=192 * _KB,
        register_file=131072,
        matrix=_WMMA,
    ),
    _target(
        "mp_22",
        "S4000: fmma of 128 threads, warps of 128",
        shared=72 * _KB,
        register_file=262144,
        matrix=_FMMA,
        matrix_lanes=128,
        lanes_meet=False,
    ),
    _target("mp_21", "S80, S3000: plain arithmetic", shared=28 * _KB, lanes_meet=False),
)
