"""Huawei Ascend in Ascend C. Facts: the vendor's Ascend C documentation for CANN 8 and 9.

Names are those of CANN 8.1: later releases rename some calls and still define the old names.
"""

from __future__ import annotations

from itertools import pairwise

from tile2c.transpile.targets.cores import Conversion, CoresTarget
from tile2c.transpile.targets.cube import CubeUnit
from tile2c.transpile.targets.host import Host
from tile2c.transpile.targets.target import Dialect

_TYPES = {
    "bool": "bool",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "float32": "float",
}

_FLOATS = ("float16", "float32")
_NUMBERS = ("float16", "float32", "int16", "int32")

_ARITHMETIC = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min"), _NUMBERS),
    **dict.fromkeys(("Adds", "Muls", "Maxs", "Mins"), _NUMBERS),
    **dict.fromkeys(("Div", "Exp", "Ln", "Abs", "Sqrt"), _FLOATS),
    **dict.fromkeys(("Compare", "CompareScalar"), (*_FLOATS, "int32")),  # int32: whether equal
    "Select": _NUMBERS,  # integers by their bits
    **dict.fromkeys(("ReduceSum", "ReduceMax", "ReduceMin"), _FLOATS),
    "CreateVecIndex": _NUMBERS,
    "Duplicate": (*_NUMBERS, "bfloat16", "uint16", "uint32"),
    "Brcb": (*_NUMBERS, "bfloat16", "uint16", "uint32"),
    "Cast": ("float32",),  # to a whole number of the same type
    **dict.fromkeys(("ShiftLeft", "ShiftRight"), ("int16", "int32", "uint16", "uint32")),
    "Interleave": _NUMBERS,  # as transposes of blocks
    "transpose": (*_NUMBERS, "uint16", "uint32"),  # TransDataTo5HD
}

# float32 to integer truncates, as an assignment does; what loses digits rounds half to even.
_DIRECT = {
    ("float16", "float32"): "CAST_NONE",
    ("bfloat16", "float32"): "CAST_NONE",
    ("int16", "float32"): "CAST_NONE",
    ("int32", "float32"): "CAST_RINT",
    ("int64", "float32"): "CAST_RINT",
    ("float32", "float16"): "CAST_RINT",
    ("float32", "bfloat16"): "CAST_RINT",
    ("float32", "int16"): "CAST_TRUNC",
    ("float32", "int32"): "CAST_TRUNC",
    ("float32", "int64"): "CAST_TRUNC",
    ("float16", "int8"): "CAST_TRUNC",
    ("float16", "uint8"): "CAST_TRUNC",
    ("float16", "int16"): "CAST_TRUNC",
    ("float16", "int32"): "CAST_TRUNC",
    ("bfloat16", "int32"): "CAST_TRUNC",
    ("int8", "float16"): "CAST_NONE",
    ("uint8", "float16"): "CAST_NONE",
    ("int16", "float16"): "CAST_RINT",
    ("int32", "int16"): "CAST_NONE",
    ("int32", "int64"): "CAST_NONE",
    ("int64", "int32"): "CAST_NONE",
}
_CHAINS = (
    ("float16", "float32", "bfloat16"),
    ("bfloat16", "float32", "float16"),
    ("bfloat16", "float32", "int16"),
    ("int8", "float16", "float32"),
    ("int16", "float16", "int8"),
    ("int16", "float16", "uint8"),
    ("uint8", "float16", "float32"),
    ("int8", "float16", "int16"),
    ("uint8", "float16", "int16"),
    ("int8", "float16", "int32"),
    ("uint8", "float16", "int32"),
    ("int16", "float32", "int32"),
    ("int16", "float32", "bfloat16"),
    ("int32", "float32", "bfloat16"),
    ("int32", "float32", "float16"),
)


def _conversions() -> dict[tuple[str, str], Conversion]:
    table = {pair: Conversion(modes=(mode,)) for pair, mode in _DIRECT.items()}
    for chain in _CHAINS:
        steps = tuple(_DIRECT[pair] for pair in pairwise(chain))
        table[chain[0], chain[-1]] = Conversion(through=chain[1:-1], modes=steps)
    return table


_RESERVED = frozenset(
    """
    alignas alignof asm auto bool break case catch char class const constexpr continue default
    delete do double else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new operator private protected public register return short signed sizeof
    static struct switch template this throw true try typedef typename union unsigned using virtual
    void volatile
    while half bfloat16_t pipe order copy_in copy_out copy_in_row copy_out_row AscendC GM_ADDR TPipe TQue TBuf
    LocalTensor GlobalTensor TPosition HardEvent RoundMode Add Sub Mul Div Max Min Adds Muls Maxs
    Mins Exp Ln Abs Sqrt Cast Compare Select Duplicate Brcb DataCopy DataCopyPad block_idx
    whole copy_fractals clear_tile core copy_bias load_left load_right multiply store_sums add_sums
    copy_row_blocks load_left_transposed load_left_transposed_squares load_left_blocks multiply_from
    load_right_transposed load_right_squares load_right_blocks multiply_blocks multiply_from_blocks
    Mmad Fixpipe LoadData copy_some_fractals transpose TransDataTo5HD
    """.split()
)

_NO_HALF = "how a program hands a 16-bit float to a kernel is not documented"

_HOST = Host(
    api="aclrt",
    errors="AscendCL",
    headers=("acl/acl.h",),
    stream_name="aclrtStream",
    stream_is_void=True,
    shared_limit="",
    compile="bisheng -x asc --npu-arch=dav-2201 -O2 -std=c++17 -fPIC -c {file}",
    together="{file} is part of the launcher's object; link that with bisheng",
    most_blocks=(65535, 1, 1),
    default_shared=0,
    refused={"float16": _NO_HALF, "bfloat16": _NO_HALF},
)

_CUBE = CubeUnit(
    cores=20,
    vector_cores=2,
    l1_bytes=524032,
    l0_bytes=65536,
    l0c_bytes=131072,
    bias_bytes=1024,
    block_bytes=32,
    fractal_rows=16,
    products={
        "float16": "float32",
        "bfloat16": "float32",
        "float32": "float32",
        "int8": "int32",
    },
    squares=frozenset(("int8",)),
    blocks=frozenset(("float32",)),
    stores={
        ("float32", "float32"): "NoQuant",
        ("float32", "float16"): "F322F16",
        ("float32", "bfloat16"): "F322BF16",
        ("int32", "int32"): "NoQuant",
    },
    adds=frozenset(("float32", "float16", "bfloat16", "int32", "int16", "int8")),
    bias={"float32": "float32", "float16": "float32", "int32": "int32"},
    queue_buffers=6,
    small_product=10,
    cross_flags=11,
    most=4095,
)

ASCEND910B = CoresTarget(
    family="ascendc",
    makers=("huawei", "ascend", "npu", "cann"),
    arch="ascend910b",
    planner="cores",
    suffix=".ascendc.cpp",
    templates=("ascendc", "cores"),
    dialect=Dialect(
        types=_TYPES,
        headers={"": ("kernel_operator.h",)},
        functions={},
        to_float={"bfloat16": "ToFloat"},
        from_float={"bfloat16": "ToBfloat16"},
        reserved=_RESERVED,
    ),
    compile="bisheng -x asc --npu-arch=dav-2201 -O2 -fPIC -shared {file} -o {stem}.so",
    module_suffix=".so",
    proven="never run on silicon",
    emulated="the samples of vectors, products, attention and convolutions",
    summary="Huawei Ascend 910B: vector cores, cube cores for products, both in one kernel",
    cores=40,
    local_bytes=196352,
    select_bytes=8192,
    block_bytes=32,
    repeat_bytes=256,
    max_repeats=255,
    max_stride=255,
    max_copy_rows=4095,
    max_queue_buffers=6,
    max_buffers=64,
    arithmetic=_ARITHMETIC,
    conversions=_conversions(),
    widen={"bfloat16": "float32"},
    held={"int8": "int16", "uint8": "int16"},
    cube=_CUBE,
    host=_HOST,
    helpers=(
        *("copy_in", "copy_in_row", "copy_out", "copy_out_row", "transpose", "order"),
        *("whole", "copy_fractals", "clear_tile", "copy_bias", "load_left", "load_left_transposed"),
        "copy_some_fractals",
        *("copy_row_blocks", "load_left_transposed_squares", "load_left_blocks"),
        *("load_right", "load_right_squares", "load_right_blocks", "load_right_transposed"),
        *("multiply", "multiply_blocks", "multiply_from", "multiply_from_blocks"),
        *("store_sums", "add_sums"),
    ),
)

TARGETS = (ASCEND910B,)
