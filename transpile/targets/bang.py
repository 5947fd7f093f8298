"""Cambricon MLU370 and MLU590 in BANG C. Facts: the vendor's developer guide of BANG C 4.5.

Vector calls take any address and any count on these chips; only the matrix unit aligns.
"""

from __future__ import annotations

from tile2c.transpile.targets.cores import Conversion, CoresTarget, CoresWords, WeightUnit
from tile2c.transpile.targets.host import Host
from tile2c.transpile.targets.target import Dialect

_KIB = 1024
_STACK = 128 * _KIB  # of the local memory, what the compiler keeps for itself

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

_SPELLING = {
    "Add": "__bang_add",
    "Sub": "__bang_sub",
    "Mul": "__bang_mul",
    "Div": "__bang_div",
    "Max": "__bang_maxequal",
    "Min": "__bang_minequal",
    "Adds": "__bang_add_scalar",
    "Subs": "__bang_sub_scalar",
    "Muls": "__bang_mul_scalar",
    "Divs": "__bang_div",
    "Maxs": "__bang_maxeq_scalar",
    "Mins": "__bang_mineq_scalar",
    "CycleAdd": "__bang_cycle_add",
    "CycleSub": "__bang_cycle_sub",
    "CycleMul": "__bang_cycle_mul",
    "CycleMax": "__bang_cycle_maxequal",
    "CycleMin": "__bang_cycle_minequal",
    "Abs": "__bang_abs",
    "Sqrt": "__bang_sqrt",
    "Rsqrt": "__bang_rsqrt",
    "Recip": "__bang_recip",
    "Exp2": "__bang_pow2",
    "Log2": "__bang_log",
    "Floor": "__bang_floor",
    "Nearby": "__bang_nearbyint",
    "Lt": "__bang_lt",
    "Le": "__bang_le",
    "Gt": "__bang_gt",
    "Ge": "__bang_ge",
    "Eq": "__bang_eq",
    "Ne": "__bang_ne",
    "Lts": "__bang_lt_scalar",
    "Les": "__bang_le_scalar",
    "Gts": "__bang_gt_scalar",
    "Ges": "__bang_ge_scalar",
    "Eqs": "__bang_eq_scalar",
    "Nes": "__bang_ne_scalar",
    "Duplicate": "__bang_write_value",
    "Zeros": "__bang_write_zero",
    "Transpose": "__bang_transpose",
    "SumPool": "columns_sum",
    "MaxPool": "columns_max",
    "MinPool": "columns_min",
    "Reorder": "__bang_reshape_filter",
    "Product": "__bang_matmul",
    "AddProduct": "multiply_add",
    "CreateVecIndex": "count_up",
    "AllOnes": "all_ones",
    "AllOnesHalf": "all_ones_half",
    "Choose": "choose",
    "ChooseInto": "choose_into",
}

_FLOATS = ("float16", "float32")
_NUMBERS = ("float16", "float32", "int16", "int32")
_ARITHMETIC = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min"), _NUMBERS),
    **dict.fromkeys(("Adds", "Subs", "Muls", "Maxs", "Mins"), _NUMBERS),
    **dict.fromkeys(("CycleAdd", "CycleSub", "CycleMul", "CycleMax", "CycleMin"), _NUMBERS),
    "Abs": _NUMBERS,
    **dict.fromkeys(("Sqrt", "Rsqrt", "Recip", "Exp2", "Log2"), ("float32",)),
    **dict.fromkeys(("Floor", "Nearby"), ("float32",)),
    "Compare": _NUMBERS,
    **dict.fromkeys(("Lt", "Ge", "Eq", "Ne"), _NUMBERS),
    **dict.fromkeys(("Gt", "Le"), _FLOATS),
    **dict.fromkeys(("Lts", "Ges", "Eqs"), _NUMBERS),
    **dict.fromkeys(("Les", "Gts", "Nes"), _FLOATS),
    "Select": _NUMBERS,
    "CreateVecIndex": _NUMBERS,
    "AtomicAdd": _NUMBERS,
    "Duplicate": (*_NUMBERS, "bfloat16", "int8", "uint8"),
    "Transpose": (*_NUMBERS, "int8", "uint8"),
    "Interleave": _NUMBERS,  # as the transpose of a few rows
    # Sums in half precision have an order, and so digits, that no document states.
    **dict.fromkeys(("SumPool", "MaxPool", "MinPool"), ("float32",)),
}
_DIVIDES = {"Div": _FLOATS, "Divs": _FLOATS}
_WITH_BFLOAT16 = {
    name: (*types, "bfloat16")
    for name, types in _ARITHMETIC.items()
    if "float16" in types and "bfloat16" not in types and name != "CreateVecIndex"
}

# float32 to integer truncates, as an assignment does; what loses digits rounds half to even.
_DIRECT = {
    ("float16", "float32"): "__bang_half2float",
    ("bfloat16", "float32"): "__bang_bfloat162float",
    ("int8", "float32"): "__bang_int82float",
    ("uint8", "float32"): "__bang_uchar2float",
    ("int16", "float32"): "__bang_int162float",
    ("int32", "float32"): "__bang_int322float_rn",
    ("float32", "float16"): "__bang_float2half_rn",
    ("float32", "bfloat16"): "__bang_float2bfloat16_rn",
    ("float32", "int8"): "__bang_float2int8_tz",
    ("float32", "uint8"): "__bang_float2uchar_tz",
    ("float32", "int16"): "__bang_float2int16_tz",
    ("float32", "int32"): "__bang_float2int32_tz",
    ("float16", "int8"): "__bang_half2int8_tz",
    ("float16", "uint8"): "__bang_half2uchar_tz",
    ("float16", "int16"): "__bang_half2int16_tz",
    ("int8", "float16"): "__bang_int82half",
    ("uint8", "float16"): "__bang_uchar2half",
}
# These also take the binary point of an integer's fixed-point meaning: none.
_POINTS = {
    name: (0,)
    for (source, target), name in _DIRECT.items()
    if any(kind in ("int8", "int16", "int32") for kind in (source, target))
}
_EXACT = ("float16", "bfloat16", "int8", "uint8", "int16", "float32")


def _conversions() -> dict[tuple[str, str], Conversion]:
    """Those with a call of their own, and those through float32 that round once at most."""
    table = {pair: Conversion(modes=(name,)) for pair, name in _DIRECT.items()}
    names = ("float16", "bfloat16", "int8", "uint8", "int16", "int32")
    for source in names:
        for target in names:
            there, back = _DIRECT.get((source, "float32")), _DIRECT.get(("float32", target))
            if source == target or (source, target) in table or source not in _EXACT:
                continue
            if there is not None and back is not None:
                table[source, target] = Conversion(through=("float32",), modes=(there, back))
    for target in ("float16", "bfloat16"):  # an int32 that a 16-bit float holds, float32 holds too
        there, back = _DIRECT["int32", "float32"], _DIRECT["float32", target]
        table["int32", target] = Conversion(through=("float32",), modes=(there, back))
    return table


_WORDS = CoresWords(
    memory="NRAM",
    nan_of_two="max and min of NaN and a number are the first operand",
    nan_of_many="of pools nothing is documented",
    cores="Block tasks",
    task="taskId",
    stride="taskDim",
    handle="{name}",
    parameter="{const}{type}* {name}",
    element="",
    at="{tile} + {offset}",
    seen_as="({type}*){tile}",
    tasks="any other number",
)

_RESERVED = frozenset(
    """
    alignas alignof asm auto bool break case catch char class const constexpr continue default
    delete do double else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new operator private protected public register return short signed sizeof
    static struct switch template this throw true try typedef typename union unsigned using virtual
    void volatile while half bfloat16_t infinity choose choose_into all_ones all_ones_half count_up
    columns_sum columns_max columns_min multiply_add
    taskId taskIdX taskIdY taskIdZ taskDim taskDimX taskDimY taskDimZ coreId coreDim clusterId
    clusterDim GDRAM2NRAM NRAM2GDRAM NRAM2NRAM NRAM2WRAM GDRAM2WRAM
    """.split()
)


_NO_HALF = "how a program hands a 16-bit float to a kernel is not documented"


def _host(arch: str) -> Host:
    """Launches stand in `.mlu` files, which the vendor's compiler makes into objects of both sides."""
    return Host(
        api="cnrt",
        errors="CNRT",
        headers=("cnrt.h",),
        stream_name="cnrtQueue_t",
        shared_limit="",
        compile=f"cncc {{file}} --bang-mlu-arch={arch} -O3 -std=c++17 -fPIC -c "
        "-I$NEUWARE_HOME/include",
        together="{file} is part of the launcher's object; link that with cnrt and cndrv",
        default_shared=0,
        launcher=".mlu",
        elements={"float16": "half", "bfloat16": "bfloat16_t"},
        refused={"float16": _NO_HALF, "bfloat16": _NO_HALF},
    )


def _target(arch: str, chip: str, number: int, nram: int, wram: int, own: bool) -> CoresTarget:
    """`own`: whether the chip divides, and computes in bfloat16."""
    more = {**_WITH_BFLOAT16, **_DIVIDES} if own else {}
    return CoresTarget(
        family="bang",
        makers=("cambricon", "mlu", "neuware"),
        arch=arch,
        planner="cores",
        suffix=".mlu",
        templates=("bang", "cores"),
        dialect=Dialect(
            types=_TYPES,
            headers={"": ("bang.h",)},
            functions={},
            to_float={"float16": "__half2float", "bfloat16": "__bfloat162float"},
            from_float={"float16": "__float2half_rn", "bfloat16": "__float2bfloat16_rn"},
            reserved=_RESERVED,
        ),
        compile=f"cncc {{file}} --bang-mlu-arch={arch} -O3 -std=c++17 -fPIC -shared -o {{stem}}.so",
        module_suffix=".so",
        host=_host(arch),
        proven="never run on silicon",
        summary=f"Cambricon {chip}, one core a block",
        facts="vendor's developer guide of BANG C 4.5, by which the core reads NRAM itself in the "
        "pipeline of vector calls; its guide to operators (mlu-ops), by which copies from and to "
        "global memory without `_async` need no synchronisation",
        emulated="the samples but for 8-bit floats and barriers",
        vectors="counts",
        order="stages",
        words=_WORDS,
        spelling=_SPELLING,
        forms={
            "Copy": "copy_inside.j2",
            "ToWeights": "copy_weights.j2",
            "CopyRows": "copy_rows.j2",
        },
        trailing=_POINTS,
        apart=frozenset(("Floor", "Nearby")),
        helpers=(
            *("count_up", "all_ones", "all_ones_half", "choose", "choose_into"),
            *("columns_sum", "columns_max", "columns_min", "multiply_add"),
        ),
        cores=16,
        local_bytes=nram - _STACK,
        select_bytes=0,
        block_bytes=1,
        repeat_bytes=1,
        max_repeats=1 << 16,
        max_stride=1 << 31,
        max_copy_rows=1 << 16,
        max_queue_buffers=0,
        max_buffers=0,
        arithmetic={**_ARITHMETIC, **more},
        conversions=_conversions(),
        weights=WeightUnit(
            memory="WRAM",
            bytes=wram,
            products=dict.fromkeys(("float16", "bfloat16", "float32"), "float32"),
            columns=64,
            inner_bytes=64,
            ordered_as={"bfloat16": "int16"},
        ),
        widen={} if own else {"bfloat16": "float32"},
    )


MTP_372 = _target("mtp_372", "MLU370", 372, 768 * _KIB, 1024 * _KIB, own=False)
MTP_592 = _target("mtp_592", "MLU590", 592, 512 * _KIB, 512 * _KIB, own=True)

TARGETS = (MTP_372, MTP_592)
