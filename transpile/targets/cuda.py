"""NVIDIA CUDA. Facts: PTX ISA and the CUDA programming guide; fragment maps are PTX's."""

from __future__ import annotations

from tile2c.transpile.targets.simt import Fragment, MatrixInstruction, SimtTarget
from tile2c.transpile.targets.target import Dialect

_TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float16": "half",
    "bfloat16": "__nv_bfloat16",
    "float32": "float",
    "float64": "double",
    "float8_e4m3fn": "__nv_fp8_e4m3",
    "float8_e5m2": "__nv_fp8_e5m2",
}

_FLOAT_NAMES = (
    "exp exp2 exp10 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan atan2 sinh cosh tanh "
    "asinh acosh atanh erf pow fmod hypot copysign ldexp nextafter floor ceil trunc"
).split()


def _functions() -> dict[tuple[str, str], str]:
    table = {(name, "float32"): f"{name}f" for name in _FLOAT_NAMES}
    table |= {(name, "float64"): name for name in _FLOAT_NAMES}
    for dtype in ("float32", "float64"):
        end = "f" if dtype == "float32" else ""
        table |= {
            ("abs", dtype): f"fabs{end}",
            ("max", dtype): f"fmax{end}",
            ("min", dtype): f"fmin{end}",
            ("round", dtype): f"rint{end}",  # half to even, as the language has it
            ("nearbyint", dtype): f"rint{end}",
            ("isnan", dtype): "isnan",
            ("isinf", dtype): "isinf",
            ("isfinite", dtype): "isfinite",
        }
    for dtype in ("float16", "bfloat16"):
        table |= {(name, dtype): f"h{name}" for name in "exp exp2 exp10 log log2 log10 sqrt rsqrt sin cos floor ceil trunc".split()}
        table |= {
            ("abs", dtype): "__habs",
            ("max", dtype): "__hmax",
            ("min", dtype): "__hmin",
            ("round", dtype): "hrint",
            ("nearbyint", dtype): "hrint",
        }
    for dtype in ("int32", "uint32", "int64", "uint64", "int8", "uint8", "int16", "uint16"):
        table |= {("max", dtype): "max", ("min", dtype): "min", ("abs", dtype): "abs"}
    return table


_DIALECT = Dialect(
    types=_TYPES,
    headers={
        "float16": ("cuda_fp16.h",),
        "bfloat16": ("cuda_bf16.h",),
        "float8_e4m3fn": ("cuda_fp8.h",),
        "float8_e5m2": ("cuda_fp8.h",),
    },
    functions=_functions(),
    to_float={"float16": "__half2float", "bfloat16": "__bfloat162float"},
    from_float={"float16": "__float2half_rn", "bfloat16": "__float2bfloat16_rn"},
    reserved=frozenset(
        "half half2 min max warpSize threadIdx blockIdx blockDim gridDim dim3 exp log y0 y1 j0 j1 jn yn "
        "gamma log2 exp2 sin cos tan abs floor ceil round size_t float2 float4 int2 int4 uint2 uint4".split()
    ),
)

# Fragment maps of mma.sync m16n8k16 with 16-bit inputs (PTX, "Matrix fragments for mma.m16n8k16").
_A_16 = Fragment(
    shape=(16, 16),
    rows=(("lane", 8, 4), ("value", 2, 2)),
    columns=(("value", 2, 1), ("lane", 4, 1), ("value", 2, 4)),
)
_B_16 = Fragment(
    shape=(8, 16),
    rows=(("lane", 8, 4),),
    columns=(("value", 2, 1), ("lane", 4, 1), ("value", 2, 2)),
)
_C_16 = Fragment(
    shape=(16, 8),
    rows=(("lane", 8, 4), ("value", 2, 2)),
    columns=(("value", 2, 1), ("lane", 4, 1)),
)
_MMA_16 = tuple(
    MatrixInstruction(
        name="mma_m16n8k16",
        m=16,
        n=8,
        k=16,
        inputs=(dtype,),
        output="float32",
        a=_A_16,
        b=_B_16,
        c=_C_16,
        operand="packed",
        load="ldmatrix",
    )
    for dtype in ("float16", "bfloat16")
)


def _target(arch: str, static_shared: int, max_shared: int, summary: str) -> SimtTarget:
    number = int(arch.removeprefix("sm_").rstrip("a"))
    flag = f"-gencode arch=compute_{number}a,code={arch}" if arch.endswith("a") else f"-arch={arch}"
    return SimtTarget(
        family="cuda",
        arch=arch,
        planner="simt",
        suffix=".cu",
        templates=("cuda", "simt"),
        dialect=_DIALECT,
        compile=f"nvcc {flag} -O3 -std=c++17 -cubin {{file}} -o {{stem}}.cubin",
        module_suffix=".cubin",
        proven="has run on silicon" if arch in ("sm_80", "sm_90", "sm_90a") else "never run on silicon",
        summary=summary,
        lanes=32,
        shuffle="__shfl_xor_sync",
        shuffle_mask="0xffffffffu",
        static_shared=static_shared,
        max_shared=max_shared,
        async_copy=(4, 8, 16) if number >= 80 else (),
        bulk_copy=number >= 90 and arch.endswith("a"),
        warpgroup_matrix=arch == "sm_90a",
        matrix=_MMA_16 if number >= 80 else (),
    )


_KB = 1024
TARGETS: tuple[SimtTarget, ...] = (
    _target("sm_80", 48 * _KB, 163 * _KB, "Ampere and everything newer: mma.sync, cp.async"),
    _target("sm_86", 48 * _KB, 99 * _KB, "Ampere, consumer parts"),
    _target("sm_89", 48 * _KB, 99 * _KB, "Ada"),
    _target("sm_90", 48 * _KB, 227 * _KB, "Hopper without its own instructions"),
    _target("sm_90a", 48 * _KB, 227 * _KB, "Hopper: TMA, mbarriers, wgmma"),
    _target("sm_100", 48 * _KB, 227 * _KB, "Blackwell, data centre, through mma.sync"),
    _target("sm_120", 48 * _KB, 99 * _KB, "Blackwell, consumer parts, through mma.sync"),
)
