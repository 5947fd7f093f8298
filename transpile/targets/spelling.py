"""Tables that dialects of CUDA's kind share: C types, functions, reserved names, atomics.

A dialect takes these and says what it spells otherwise.
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.targets.target import Dialect

# Element type -> C type, for those that are C's own.
C_TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}

# Names that a kernel of any of these dialects must leave alone.
RESERVED = frozenset(
    "half half2 min max warpSize threadIdx blockIdx blockDim gridDim dim3 exp log y0 y1 j0 j1 jn yn "
    "gamma log2 exp2 sin cos tan abs floor ceil round size_t float2 float4 int2 int4 uint2 uint4".split()
)

_FLOAT_NAMES = (
    "exp exp2 exp10 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan atan2 sinh cosh tanh "
    "asinh acosh atanh erf pow fmod hypot copysign ldexp nextafter floor ceil trunc"
).split()
_WIDE = "unsigned long long"


def plain_functions() -> dict[tuple[str, str], str]:
    """(canonical function, element type) -> C function, for float, double and integers."""
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
    for function, short in (("popcount", "__popc"), ("clz", "__clz"), ("ffs", "__ffs")):
        table |= {(function, dtype): short for dtype in ("int32", "uint32")}
        table |= {(function, dtype): f"{short}ll" for dtype in ("int64", "uint64")}
    for dtype in ("int32", "uint32", "int64", "uint64", "int8", "uint8", "int16", "uint16"):
        table |= {("max", dtype): "max", ("min", dtype): "min", ("abs", dtype): "abs"}
    return table


def half_functions() -> dict[tuple[str, str], str]:
    """The same for the 16-bit floats, where the toolkit's headers have them."""
    table: dict[tuple[str, str], str] = {}
    for dtype in ("float16", "bfloat16"):
        table |= {
            (name, dtype): f"h{name}"
            for name in "exp exp2 exp10 log log2 log10 sqrt rsqrt sin cos floor ceil trunc".split()
        }
        table |= {
            ("abs", dtype): "__habs",
            ("max", dtype): "__hmax",
            ("min", dtype): "__hmin",
            ("round", dtype): "hrint",
            ("nearbyint", dtype): "hrint",
        }
    return table


def with_bytes_as_floats(dialect: Dialect, *kinds: str) -> Dialect:
    """The dialect with 8-bit floats (E4M3, then E5M2) that are kept as their bits: the text has the
    conversions."""
    pairs = tuple(zip(kinds, ("fp8", "bf8"), strict=False))
    functions = {f"float_of_{word}" for _, word in pairs} | {
        f"{word}_of_float" for _, word in pairs
    }
    return replace(
        dialect,
        types={**dialect.types, **dict.fromkeys(kinds, "unsigned char")},
        to_float={**dialect.to_float, **{name: f"float_of_{word}" for name, word in pairs}},
        from_float={**dialect.from_float, **{name: f"{word}_of_float" for name, word in pairs}},
        reserved=dialect.reserved | functions,
        declares=dict.fromkeys(kinds, ("float_of_float8", "float8_of_float")),
    )


def atomics(*added: str) -> dict[tuple[str, str], tuple[str, str]]:
    """(operation, element type) -> C function, and the type to take the address as ("" as it is).

    added  element types of floats that atomicAdd takes
    """
    table: dict[tuple[str, str], tuple[str, str]] = {}
    for dtype in ("int32", "uint32", "int64", "uint64"):
        # two's complement sums and bits are the same signed or not
        carrier = _WIDE if dtype == "int64" else ""
        table["add", dtype] = ("atomicAdd", carrier)
        table["or", dtype] = ("atomicOr", carrier)
        table["exchange", dtype] = ("atomicExch", carrier)
        table["max", dtype] = ("atomicMax", "")
        table["min", dtype] = ("atomicMin", "")
    table["exchange", "float32"] = ("atomicExch", "")
    return table | {("add", dtype): ("atomicAdd", "") for dtype in added}
