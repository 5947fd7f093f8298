"""AMD HIP. Facts: the HIP documentation, LLVM's AMDGPU back end, AMD's matrix instruction calculator."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

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

# 16-bit floats are the compiler's own types: no header, arithmetic as written, vectors of them.
_TYPES = C_TYPES | {"float16": "_Float16", "bfloat16": "__bf16"}

# Vector types of the file, by the name that the plan asks for; `vector_types` declares them.
_VECTORS = {
    "float16x4": "half4",
    "float16x8": "half8",
    "float16x16": "half16",
    "bfloat16x4": "bf16x4",
    "bfloat16x8": "bf16x8",
    "bfloat16x16": "bf16x16",
    "int8x8": "charx8",
    "int32x4": "intx4",
    "float32x4": "floatx4",
    "float32x8": "floatx8",
}

_DIALECT = Dialect(
    types=_TYPES | _VECTORS,
    headers={"": ("hip/hip_runtime.h",)},
    functions=plain_functions(),
    to_float={"float16": "float", "bfloat16": "float"},
    from_float={"float16": "_Float16", "bfloat16": "__bf16"},
    reserved=RESERVED
    | {"half4", "float_of_fp8", "float_of_bf8", "fp8_of_float", "bf8_of_float"}
    | frozenset(_VECTORS.values()),
)

_HOST = Host(
    api="hip",
    headers=("hip/hip_runtime_api.h",),
    stream="ihipStream_t",
    structs={"float16": "__half", "bfloat16": "__hip_bfloat16"},
    narrow={
        "float16": ("hip/hip_fp16.h", "__float2half"),
        "bfloat16": ("hip/hip_bf16.h", "__float2bfloat16"),
    },
    shared_limit="hipDeviceAttributeMaxSharedMemoryPerBlock",
    compile="hipcc -std=c++17 -O2 -c {file}",
    together="hipcc --offload-arch={arch} -O3 -std=c++17 -c {file}; link both objects with hipcc",
    most_threads=2**32 - 1,
    default_shared=64 * 1024,
)

Dim = tuple[tuple[Literal["lane", "value"], int, int], ...]


def _fragment(shape: tuple[int, int], rows: Dim, columns: Dim) -> Fragment:
    return Fragment(shape=shape, rows=rows, columns=columns)


# MFMA 16x16x16 with 16-bit inputs on a wave of 64: lane l holds row l % 16 of a (and column l % 16
# of b) at four neighbouring k from l / 16 * 4.
_MFMA_INPUT = _fragment((16, 16), (("lane", 16, 1),), (("value", 4, 1), ("lane", 4, 16)))
# The helpers hand b over as the first operand: the unit then leaves c transposed in the lanes, so
# that a lane holds four neighbours of one row and writes them in one access.
_MFMA_OUTPUT = _fragment((16, 16), (("lane", 16, 1),), (("value", 4, 1), ("lane", 4, 16)))
# gfx950 takes twice as many k at once; elsewhere two instructions do, for operands of 16 bytes a lane.
_MFMA_WIDE = _fragment((16, 32), (("lane", 16, 1),), (("value", 8, 1), ("lane", 4, 16)))


def _matrix(
    name: str, k: int, dtype: str, operand: Fragment, output: Fragment
) -> MatrixInstruction:
    return MatrixInstruction(
        name=name,
        m=16,
        n=16,
        k=k,
        inputs=(dtype,),
        output="float32",
        a=operand,
        b=operand,
        c=output,
        operand="vector",
        load="plain",
    )


def _of_16_bits(
    name: str, k: int, operand: Fragment, output: Fragment
) -> tuple[MatrixInstruction, ...]:
    return tuple(_matrix(name, k, dtype, operand, output) for dtype in ("float16", "bfloat16"))


# The first whose k divides the tile's is taken.
_MFMA_16 = _of_16_bits("mfma_16x16x16", 16, _MFMA_INPUT, _MFMA_OUTPUT)
_MFMA = (*_of_16_bits("mfma_16x16x16_twice", 32, _MFMA_WIDE, _MFMA_OUTPUT), *_MFMA_16)
_MFMA_950 = (*_of_16_bits("mfma_16x16x32", 32, _MFMA_WIDE, _MFMA_OUTPUT), *_MFMA_16)

# WMMA on waves of 32. RDNA 3: a lane holds all k of its row; lanes 16 to 31 hold what the others do.
_WMMA_INPUT = _fragment((16, 16), (("lane", 16, 1),), (("value", 16, 1),))
_WMMA_OUTPUT = _fragment((16, 16), (("lane", 2, 16), ("value", 8, 1)), (("lane", 16, 1),))
_WMMA = _of_16_bits("wmma_16x16x16", 16, _WMMA_INPUT, _WMMA_OUTPUT)
# Bytes, as registers: eight k a lane, from gfx942 on.
_MFMA_BYTES = _fragment((16, 32), (("lane", 16, 1),), (("value", 8, 1), ("lane", 4, 16)))
# RDNA 4: halves of k; with b as the first operand a lane gets eight neighbours of a row of c.
_WMMA_12_INPUT = _fragment((16, 16), (("lane", 16, 1),), (("value", 8, 1), ("lane", 2, 16)))
_WMMA_12_OUTPUT = _fragment((16, 16), (("lane", 16, 1),), (("value", 8, 1), ("lane", 2, 16)))
_WMMA_12 = _of_16_bits("wmma_16x16x16_gfx12", 16, _WMMA_12_INPUT, _WMMA_12_OUTPUT)

# The chip's own 8-bit floats, kept as their bits: gfx942 has the kinds without infinities (FNUZ), later
# chips the common ones.
_FNUZ = ("float8_e4m3fnuz", "float8_e5m2fnuz")
_OCP = ("float8_e4m3fn", "float8_e5m2")


def _registers(
    name: str, inputs: tuple[str, ...], total: str, operand: Fragment, output: Fragment
) -> MatrixInstruction:
    """An instruction whose operands are passed as registers of 32 bits."""
    return MatrixInstruction(
        name=name,
        m=16,
        n=16,
        k=operand.shape[1],
        inputs=inputs,
        output=total,
        a=operand,
        b=operand,
        c=output,
        operand="packed",
        load="lanes",
    )


def _bytes(*floats: tuple[str, ...]) -> tuple[MatrixInstruction, ...]:
    """MFMA of 8-bit integers and floats; types of one group can be mixed."""
    kinds = ((("int8",), "int32"), *((group, "float32") for group in floats))
    return tuple(
        _registers("mfma_16x16x32_bytes", inputs, total, _MFMA_BYTES, _MFMA_OUTPUT)
        for inputs, total in kinds
    )


_WMMA_12_BYTES = (
    _registers("wmma_16x16x16_fp8_gfx12", _OCP, "float32", _WMMA_12_INPUT, _WMMA_12_OUTPUT),
)


_KB = 1024


def _target(
    arch: str,
    summary: str,
    *,
    matrix: tuple[MatrixInstruction, ...],
    lanes: int = 64,
    shared: int = 64 * _KB,
    small: tuple[str, ...] = (),
) -> SimtTarget:
    return SimtTarget(
        family="hip",
        makers=("amd", "rocm", "instinct", "radeon"),
        arch=arch,
        planner="simt",
        suffix=".hip",
        templates=("hip", "simt"),
        dialect=with_bytes_as_floats(_DIALECT, *small),
        compile=f"hipcc --genco --offload-arch={arch} -O3 -std=c++17 {{file}} -o {{stem}}.hsaco",
        module_suffix=".hsaco",
        proven="never run on silicon",
        emulated="the samples",
        compiled="clang 22, without the vendor's headers",
        summary=summary,
        host=replace(_HOST, together=_HOST.together.replace("{arch}", arch)),
        lanes=lanes,
        registers=512 if lanes == 64 else 256,
        register_file=131072,
        group="wave",
        shuffle="__shfl_xor",
        shuffle_mask=None,
        shuffle_as={"float16": "float", "bfloat16": "float"},
        static_shared=64 * _KB,
        max_shared=shared,
        lone_types=frozenset({"bool"}),  # a vector of them is one of bits
        async_copy=(),
        matrix=matrix,
        atomics=atomics("float32", "float64"),
        lanes_meet="wave",
        trap="__builtin_trap",
        declares_printf=True,
        swap_small="compare_swap({word}, {seen}, {next})",
    )


TARGETS: tuple[SimtTarget, ...] = (
    _target(
        "gfx942",
        "MI300: MFMA, waves of 64",
        matrix=(*_MFMA, *_bytes(_FNUZ[:1], _FNUZ[1:])),
        small=_FNUZ,
    ),
    _target("gfx90a", "MI200: MFMA, waves of 64", matrix=_MFMA),
    _target(
        "gfx950",
        "MI350: MFMA with twice the K, waves of 64",
        matrix=(*_MFMA_950, *_bytes(_OCP)),
        shared=160 * _KB,
        small=_OCP,
    ),
    _target("gfx1100", "RDNA 3: WMMA, waves of 32", matrix=_WMMA, lanes=32),
    _target(
        "gfx1201",
        "RDNA 4: WMMA, waves of 32",
        matrix=(*_WMMA_12, *_WMMA_12_BYTES),
        lanes=32,
        small=_OCP,
    ),
)
