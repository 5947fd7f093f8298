"""T-Head PPU (SAIL, HGGC). Facts: the vendor's public templates and samples.

Its inline assembler resembles PTX and is not PTX. The bulk copies (AIU) and their swizzle are not
documented, so tiles are copied by 16 bytes a thread. Fragments differ between the generations: ppu_10
keeps k in the second register, ppu_15 the lower rows.
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
    types=C_TYPES | {"float16": "half", "bfloat16": "__ppu_bfloat16"},
    headers={
        "": ("hggc_runtime.h",),
        "float16": ("hggc_fp16.h",),
        "bfloat16": ("hggc_bf16.h",),
    },
    functions=plain_functions(),
    to_float={"float16": "__half2float", "bfloat16": "__bfloat162float"},
    from_float={"float16": "__float2half", "bfloat16": "__float2bfloat16"},
    reserved=RESERVED,
)


# Names: the vendor's samples and ports. Of the two headers neither includes the other everywhere. What
# struct stands behind 16-bit floats is in no public header.
_HOST = Host(
    api="hggc",
    headers=("hggc_runtime.h", "hggc_runtime_api.h"),
    stream="HGstream_st",
    shared_limit="hggcDevAttrMaxSharedMemoryPerBlockOptin",
    kernel="__global__ void",
    compile="hgcc -x hg -arch={arch} -O2 -std=c++20 -c {{file}}",
    together="hgcc -x hg -arch={arch} -O3 -std=c++20 -c {{file}}; link both objects with hgcc",
    default_shared=48 * 1024,
)


def _rows_last(per: int) -> Fragment:
    """Registers count along k first, then 8 rows down; one holds `per` neighbours in k."""
    return Fragment(
        shape=(16, 8 * per),
        rows=(("lane", 8, 4), ("value", 2, 2 * per)),
        columns=(("value", per, 1), ("lane", 4, 1), ("value", 2, per)),
    )


def _rows_first(per: int) -> Fragment:
    """Registers count 8 rows down first, then along k."""
    return Fragment(
        shape=(16, 8 * per),
        rows=(("lane", 8, 4), ("value", 2, per)),
        columns=(("value", per, 1), ("lane", 4, 1), ("value", 2, 2 * per)),
    )


_SUMS_10 = Fragment(
    shape=(16, 16),
    rows=(("lane", 8, 4), ("value", 2, 4)),
    columns=(("lane", 4, 1), ("value", 4, 1)),
)


def _mma(kind: str, per: int, total: str, old: bool) -> MatrixInstruction:
    """m16n16 with K of 8 registers' worth; `per` elements fill a register."""
    return MatrixInstruction(
        name="mma_m16n16_tc01" if old else "mma_m16n16_tc02",
        m=16,
        n=16,
        k=8 * per,
        inputs=(kind,),
        output=total,
        a=_rows_last(per) if old else _rows_first(per),
        b=_rows_last(per),
        c=_SUMS_10 if old else _rows_first(2),
        operand="packed",
        load="lanes",
    )


def _target(arch: str, summary: str, *kinds: tuple[str, int, str]) -> SimtTarget:
    old = arch == "ppu_10"
    return SimtTarget(
        family="ppu",
        makers=("thead", "t-head", "pingtouge"),
        arch=arch,
        planner="simt",
        suffix=".hg",
        templates=("ppu", "simt"),
        dialect=_DIALECT if old else with_bytes_as_floats(_DIALECT, *_FP8),
        compile=f"hgcc -x hg -hgbin -arch={arch} -O3 -std=c++20 {{file}} -o {{stem}}.hgbin",
        module_suffix=".hgbin",
        proven="never run on silicon",
        emulated="the samples",
        compiled="nvcc 13 with stub headers: types and syntax",
        facts="vendor's public source: assembler, fragment maps; 48 KB and 32 banks assumed",
        summary=summary,
        lanes=32,
        shuffle="__shfl_xor_sync",
        shuffle_mask="0xffffffffu",
        lanes_meet="mask",
        named_barriers=True,
        static_shared=48 * 1024,
        max_shared=48 * 1024,
        async_copy=(4, 8, 16),
        matrix=tuple(_mma(kind, per, total, old) for kind, per, total in kinds),
        atomics=atomics("float32"),
        swap_small="compare_swap({word}, {seen}, {next})",
        host=_HOST.for_arch(arch),
    )


# 8-bit floats of ppu_15 (OCP), kept as their bits: the vendor's header of them is not public.
_FP8 = ("float8_e4m3fn", "float8_e5m2")
_HALVES = (("float16", 2, "float32"), ("bfloat16", 2, "float32"))

TARGETS: tuple[SimtTarget, ...] = (
    _target(
        "ppu_10",
        "T-Head PPU 810E class: mma of tc01, asynchronous copies",
        *_HALVES,
        ("int8", 4, "int32"),
        ("uint8", 4, "int32"),
    ),
    _target(
        "ppu_15",
        "T-Head PPU, second generation: mma of tc02, asynchronous copies",
        *_HALVES,
        ("int8", 4, "int32"),
        *((kind, 4, "float32") for kind in _FP8),
    ),
)
