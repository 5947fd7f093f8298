"""NVIDIA CUDA. Facts: PTX ISA and the CUDA programming guide; fragment maps are PTX's."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tile2c.transpile.targets.host import Host
from tile2c.transpile.targets.simt import Fragment, MatrixInstruction, SimtTarget
from tile2c.transpile.targets.spelling import (
    C_TYPES,
    RESERVED,
    atomics,
    half_functions,
    plain_functions,
)
from tile2c.transpile.targets.target import Dialect

_TYPES = C_TYPES | {
    "float16": "half",
    "bfloat16": "__nv_bfloat16",
    "float8_e4m3fn": "__nv_fp8_e4m3",
    "float8_e5m2": "__nv_fp8_e5m2",
}

_DIALECT = Dialect(
    types=_TYPES,
    headers={
        "float16": ("cuda_fp16.h",),
        "bfloat16": ("cuda_bf16.h",),
        "float8_e4m3fn": ("cuda_fp8.h",),
        "float8_e5m2": ("cuda_fp8.h",),
    },
    functions=plain_functions() | half_functions(),
    to_float={"float16": "__half2float", "bfloat16": "__bfloat162float"},
    from_float={"float16": "__float2half_rn", "bfloat16": "__float2bfloat16_rn"},
    reserved=RESERVED,
)

_HOST = Host(
    api="cuda",
    headers=("cuda_runtime_api.h",),
    stream="CUstream_st",
    structs={
        "float16": "__half",
        "bfloat16": "__nv_bfloat16",
        "float8_e4m3fn": "__nv_fp8_e4m3",
        "float8_e5m2": "__nv_fp8_e5m2",
    },
    narrow={
        "float16": ("cuda_fp16.h", "__float2half_rn"),
        "bfloat16": ("cuda_bf16.h", "__float2bfloat16_rn"),
    },
    multiprocessors="cudaDevAttrMultiProcessorCount",
    shared_limit="cudaDevAttrMaxSharedMemoryPerBlockOptin",
    compile="g++ -std=c++17 -O2 -I /usr/local/cuda/include -c {file}",
    together="nvcc {arch} -O3 -std=c++17 -c {file}; link both objects with cudart",
    default_shared=48 * 1024,
    tensor_maps=True,
    clusters=True,
)

# Fragment maps of mma.sync (PTX, "Matrix fragments"). Operands of 32, 16 and 8 bits share one form: a
# register holds `per` neighbours in k, lane l those from per * (l % 4) of row l / 4; registers count
# 8 rows down (a only), then 4 * per along k.
_Digits = tuple[tuple[Literal["lane", "value"], int, int], ...]


def _a(per: int, registers: int) -> Fragment:
    depth = registers // 2
    columns: _Digits = (("value", per, 1), ("lane", 4, 1), ("value", depth, 2 * per))
    rows: _Digits = (("lane", 8, 4), ("value", 2, per))
    return Fragment(shape=(16, 4 * per * depth), rows=rows, columns=columns)


def _b(per: int, registers: int) -> Fragment:
    columns: _Digits = (("value", per, 1), ("lane", 4, 1), ("value", registers, per))
    return Fragment(shape=(8, 4 * per * registers), rows=(("lane", 8, 4),), columns=columns)


_C = Fragment(
    shape=(16, 8),
    rows=(("lane", 8, 4), ("value", 2, 2)),
    columns=(("value", 2, 1), ("lane", 4, 1)),
)


def _mma(
    name: str,
    inputs: tuple[str, ...],
    output: str,
    per: int,
    *,
    registers: int = 4,
    note: str = "",
    cost: str = "",
    several: tuple[int, int, int] | None = None,
) -> MatrixInstruction:
    """A product of 16 x 8; `per` elements of the inputs fill a register, a takes `registers`."""
    return MatrixInstruction(
        name=name,
        m=16,
        n=8,
        k=2 * per * registers,
        inputs=inputs,
        output=output,
        a=_a(per, registers),
        b=_b(per, registers // 2),
        c=_C,
        operand="packed",
        load="ldmatrix",
        note=note,
        cost=cost,
        several=several,
    )


_FP8 = ("float8_e4m3fn", "float8_e5m2")
_BF16_SUMS = "sums in bfloat16 are rounded after every 16 of K"
_TF32 = "float32 products are TF32: inputs rounded to 10 bits of mantissa, sums in float32"
_HALVES_80 = tuple(
    _mma(f"mma_m16n8k{4 * registers}", (kind,), output, 2, registers=registers, note=note)
    for registers in (4, 2)
    for kind, output, note in (
        ("float16", "float32", ""),
        ("float16", "float16", ""),
        ("bfloat16", "float32", ""),
        ("bfloat16", "bfloat16", _BF16_SUMS),
    )
)
_HALVES_75 = tuple(
    _mma(name, ("float16",), output, 2, registers=registers, several=several)
    for name, registers, several in (
        ("mma_m16n8k16_of_k8", 4, (16, 8, 8)),
        ("mma_m16n8k8", 2, None),
    )
    for output in ("float32", "float16")
)
_TF32_80 = (_mma("mma_m16n8k8_tf32", ("float32",), "float32", 1, note=_TF32),)
_INTS_80 = tuple(_mma("mma_m16n8k32_int", (x,), "int32", 4) for x in ("int8", "uint8"))
_INTS_75 = tuple(
    _mma("mma_m16n8k32_of_m8n8k16", (x,), "int32", 4, several=(8, 8, 16)) for x in ("int8", "uint8")
)
_FP8_89 = (
    _mma(
        "mma_m16n8k32_fp8",
        _FP8,
        "float32",
        4,
        note="sums of 8-bit products leave the matrix unit after every 32 of K, which keeps few bits",
    ),
)


def _widened(through: str) -> tuple[MatrixInstruction, ...]:
    instruction = _mma(
        "mma_m16n8k32_widened",
        _FP8,
        "float32",
        4,
        note="8-bit floats are widened to float16, exactly: the chip multiplies no 8-bit floats",
        cost="operands are widened to float16 in registers, and products run at float16's rate",
    )
    return (replace(instruction, through=through),)


# On Hopper wgmma alone multiplies 8-bit floats: of mma.sync's product ptxas makes one of float16, whose sums
# it adds up one by one. Said so in the text, it takes fewer registers and less time.
_FP8_90 = tuple(
    replace(
        instruction,
        converts=True,
        note="8-bit floats of mma.sync are widened to float16, exactly: the chip multiplies them so",
        cost="",
    )
    for instruction in _widened("mma_m16n8k16")
)


_DOUBLES = (
    MatrixInstruction(
        name="mma_m8n8k4_f64",
        m=8,
        n=8,
        k=4,
        inputs=("float64",),
        output="float64",
        a=Fragment(shape=(8, 4), rows=(("lane", 8, 4),), columns=(("lane", 4, 1),)),
        b=Fragment(shape=(8, 4), rows=(("lane", 8, 4),), columns=(("lane", 4, 1),)),
        c=Fragment(shape=(8, 8), rows=(("lane", 8, 4),), columns=(("value", 2, 1), ("lane", 4, 1))),
        operand="packed",
        load="lanes",
    ),
)

# Volta: one instruction is four products of 8 x 8 x 4, one for each quad pair l / 4 % 4. Bits 0 and 1
# of it choose the half of the rows and of the columns, so that a warp fills 16 x 16.
_EIGHT: _Digits = (("lane", 4, 1), ("lane", 2, 16))
_QUAD_PAIRS = tuple(
    MatrixInstruction(
        name="mma_m8n8k4",
        m=16,
        n=16,
        k=4,
        inputs=("float16",),
        output=output,
        a=Fragment(shape=(16, 4), rows=(*_EIGHT, ("lane", 2, 4)), columns=(("value", 4, 1),)),
        b=Fragment(shape=(16, 4), rows=(*_EIGHT, ("lane", 2, 8)), columns=(("value", 4, 1),)),
        a_turned=Fragment(
            shape=(16, 4),
            rows=(("value", 4, 1), ("lane", 2, 16), ("lane", 2, 4)),
            columns=(("lane", 4, 1),),
        ),
        b_turned=Fragment(
            shape=(16, 4),
            rows=(("value", 4, 1), ("lane", 2, 16), ("lane", 2, 8)),
            columns=(("lane", 4, 1),),
        ),
        c=Fragment(
            shape=(16, 16),
            rows=(*_EIGHT, ("lane", 2, 4)),
            columns=(("value", 8, 1), ("lane", 2, 8)),
        )
        if output == "float16"
        else Fragment(
            shape=(16, 16),
            rows=(("lane", 2, 1), ("value", 2, 2), ("lane", 2, 16), ("lane", 2, 4)),
            columns=(("value", 2, 1), ("lane", 2, 2), ("value", 2, 4), ("lane", 2, 8)),
        ),
        operand="packed",
        load="lanes",
    )
    for output in ("float32", "float16")
)


def _matrix(number: int) -> tuple[MatrixInstruction, ...]:
    """What the chip's matrix unit multiplies, the deepest instruction of a kind first."""
    if number >= 80:
        fp8 = _FP8_90 if number == 90 else _FP8_89
        if number < 89:
            fp8 = _widened("mma_m16n8k16")
        return (*_HALVES_80, *_TF32_80, *_INTS_80, *fp8, *_DOUBLES)
    if number == 75:
        return (*_HALVES_75, *_INTS_75, *_widened("mma_m16n8k16_of_k8"))
    return _QUAD_PAIRS


# What docs/performance.md reports. A text for sm_80 runs on newer chips once it is compiled for them.
_PROVEN = {
    "sm_80": "texts for it have run on an H200",
    "sm_90a": "texts for it have run on an H200",
}


def _target(arch: str, static_shared: int, max_shared: int, summary: str) -> SimtTarget:
    number = int(arch.removeprefix("sm_").rstrip("a"))
    flag = f"-arch={arch}"
    return SimtTarget(
        family="cuda",
        makers=("nvidia",),
        arch=arch,
        planner="simt",
        suffix=".cu",
        templates=("cuda", "simt"),
        dialect=_DIALECT,
        compile=f"nvcc {flag} -O3 -std=c++17 -cubin {{file}} -o {{stem}}.cubin",
        module_suffix=".cubin",
        proven=_PROVEN.get(arch, "never run on silicon"),
        emulated="the samples",
        compiled="NVRTC 12.9" if number == 70 else "nvcc 13",
        summary=summary,
        host=replace(_HOST, together=_HOST.together.replace("{arch}", flag)),
        lanes=32,
        shuffle="__shfl_xor_sync",
        shuffle_mask="0xffffffffu",
        static_shared=static_shared,
        max_shared=max_shared,
        async_copy=(4, 8, 16) if number >= 80 else (),
        results_in_rows=number >= 80,
        bulk_copy=number >= 90 and arch.endswith("a"),
        warpgroup_matrix=arch == "sm_90a",
        matrix=_matrix(number),
        # the other small floats by compare-and-swap
        atomics=atomics("float32", "float64", "float16", *(("bfloat16",) if number >= 80 else ())),
        lanes_meet="mask",
        named_barriers=True,
    )


_KB = 1024
TARGETS: tuple[SimtTarget, ...] = (  # the first is what plain `cuda` means
    _target("sm_80", 48 * _KB, 163 * _KB, "Ampere and everything newer: mma.sync, cp.async"),
    _target("sm_70", 48 * _KB, 96 * _KB, "Volta: mma.sync of quad pairs; needs CUDA 12"),
    _target("sm_75", 48 * _KB, 64 * _KB, "Turing: mma.sync, no asynchronous copies"),
    _target("sm_86", 48 * _KB, 99 * _KB, "Ampere, consumer parts"),
    _target("sm_89", 48 * _KB, 99 * _KB, "Ada"),
    _target("sm_90", 48 * _KB, 227 * _KB, "Hopper without its own instructions"),
    _target("sm_90a", 48 * _KB, 227 * _KB, "Hopper: TMA, mbarriers, wgmma"),
    _target("sm_100", 48 * _KB, 227 * _KB, "Blackwell, data centre, through mma.sync"),
    _target("sm_120", 48 * _KB, 99 * _KB, "Blackwell, consumer parts, through mma.sync"),
)
