"""Which PTX instructions have a model, what each becomes, and which architecture has it.

To add one: a line here and a function in include/emulate/ptx*.h that takes the operands in order
(a vector operand as a `Pack`, `[a+4]` as `a + 4`, `[map, {x}]` as two arguments, `p|q` as two).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

Match = re.Match[str]


@dataclass(frozen=True, slots=True)
class Rule:
    """One family of opcodes.

    pattern  matches the whole opcode
    call     gives the C++ name, with template arguments, from the match
    needs    the first architecture that has it, `sm_80`; `sm_90a` and `ppu_10=` mean exactly that one
    """

    name: str
    pattern: re.Pattern[str]
    call: Callable[[Match], str]
    needs: str

    def is_available(self, arch: str) -> bool:
        """Whether `arch` (`sm_86`, `sm_90a`, or another family's name) has the instruction."""
        have, want = _level(arch), _level(self.needs)
        if have is None or want is None:
            return True
        if have[0] != want[0]:
            return False
        if want[2]:
            return have[1:] == (want[1], want[2].rstrip("="))
        return have[1] >= want[1]


def _level(arch: str) -> tuple[str, int, str] | None:
    """Whose assembler, the generation, and the letter of a feature set."""
    found = re.fullmatch(r"(sm|ppu)_(\d+)([af=]?)", arch)
    return (found.group(1), int(found.group(2)), found.group(3)) if found else None


RULES: list[Rule] = []


def rule(pattern: str, call: str | Callable[[Match], str], needs: str = "sm_70") -> None:
    """Adds a family; `call` may use the pattern's named groups in braces."""
    name = re.match(r"[a-z0-9_]+(?:\\\.[a-z_]+)*", pattern)
    shown = name.group().replace("\\", "") if name else pattern
    if isinstance(call, str):
        form = call

        def make(match: Match) -> str:
            return form.format(**{key: value or "" for key, value in match.groupdict().items()})

        RULES.append(Rule(shown, re.compile(pattern), make, needs))
    else:
        RULES.append(Rule(shown, re.compile(pattern), call, needs))


@cache
def find_rule(opcode: str) -> tuple[Rule | None, Match | None]:
    """The rule for an opcode with its match; (None, None) if there is no model."""
    for candidate in RULES:
        match = candidate.pattern.fullmatch(opcode)
        if match:
            return candidate, match
    return None, None


_TYPES = {
    "b8": "uint8_t", "u8": "uint8_t", "s8": "int8_t",
    "b16": "uint16_t", "u16": "uint16_t", "s16": "int16_t",
    "b32": "uint32_t", "u32": "uint32_t", "s32": "int32_t",
    "b64": "uint64_t", "u64": "uint64_t", "s64": "int64_t",
    "f32": "float", "f64": "double", "f16": "F16", "bf16": "BF16", "f16x2": "F16X2",
    "bf16x2": "BF16X2",
}  # fmt: skip
_WIDE = {"u16": "uint32_t", "s16": "int32_t", "u32": "uint64_t", "s32": "int64_t",
         "u64": "unsigned __int128", "s64": "__int128"}  # fmt: skip


def typed(form: str) -> Callable[[Match], str]:
    """`form` with {t} as the C++ type of group `type`, {w} its double width, {op} in capitals."""

    def call(match: Match) -> str:
        groups = match.groupdict()
        kind = groups.get("type") or "b32"
        spelled = f"emu::ptx::{_TYPES[kind]}" if _TYPES[kind].isupper() else _TYPES[kind]
        return form.format(
            t=spelled, w=_WIDE.get(kind, ""), op=(groups.get("op") or "").upper(), kind=kind.upper()
        )

    return call


# ---- asynchronous copies
_HINTS = r"(\.L2::(64|128|256)B)?"
rule(rf"cp\.async\.(ca|cg)\.shared(::cta)?\.global{_HINTS}", "cp_async", "sm_80")
rule(
    rf"cp\.async\.(ca|cg)\.shared(::cta)?\.global\.L2::cache_hint{_HINTS}", "cp_async_hint", "sm_80"
)
rule(r"cp\.async\.commit_group", "cp_async_commit", "sm_80")
rule(r"cp\.async\.wait_group", "cp_async_wait", "sm_80")
rule(r"cp\.async\.wait_all", "cp_async_wait_all", "sm_80")


# ---- matrices
def matrix_move(model: str) -> Callable[[Match], str]:
    """ldmatrix and stmatrix: how many matrices, and whether they are transposed."""

    def call(match: Match) -> str:
        transposed = "true" if match.group("trans") else "false"
        return f"{model}<{match.group('count')}, {transposed}>"

    return call


_MOVE = r"\.sync\.aligned\.m8n8\.x(?P<count>[124])(?P<trans>\.trans)?\.shared(::cta)?\.b16"
rule(r"ldmatrix" + _MOVE, matrix_move("ldmatrix"), "sm_75")
rule(r"stmatrix" + _MOVE, matrix_move("stmatrix"), "sm_90")

_MMA = (
    r"mma\.sync\.aligned\.m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)\.(?P<a_major>row|col)\.(?P<b_major>row|col)"
    r"(\.satfinite)?(\.kind::f8f6f4)?"
)


def _mma(match: Match) -> str:
    types = ", ".join(f"TYPE_{match.group(key).upper()}" for key in ("d", "a", "b", "c"))
    rows = ", ".join(
        "true" if match.group(key) == "row" else "false" for key in ("a_major", "b_major")
    )
    return f"mma<{match.group('m')}, {match.group('n')}, {match.group('k')}, {types}, {rows}>"


def mma(shapes: str, types: str, needs: str) -> None:
    """`types`: a pattern of the four type suffixes, in groups d, a, b, c."""
    pattern = _MMA.replace(
        r"m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)", rf"(?={shapes}\.)m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)"
    )
    rule(pattern + types, _mma, needs)


mma("m8n8k4", r"\.(?P<d>f16|f32)\.(?P<a>f16)\.(?P<b>f16)\.(?P<c>f16|f32)", "sm_70")
mma("m16n8k8", r"\.(?P<d>f16|f32)\.(?P<a>f16)\.(?P<b>f16)\.(?P<c>f16|f32)", "sm_75")
mma("m16n8k16", r"\.(?P<d>f16|f32)\.(?P<a>f16)\.(?P<b>f16)\.(?P<c>f16|f32)", "sm_80")
mma("m16n8k(8|16)", r"\.(?P<d>f32)\.(?P<a>bf16)\.(?P<b>bf16)\.(?P<c>f32)", "sm_80")
mma("m16n8k(4|8)", r"\.(?P<d>f32)\.(?P<a>tf32)\.(?P<b>tf32)\.(?P<c>f32)", "sm_80")
mma("m8n8k16", r"\.(?P<d>s32)\.(?P<a>[su]8)\.(?P<b>[su]8)\.(?P<c>s32)", "sm_75")
mma("m16n8k(16|32)", r"\.(?P<d>s32)\.(?P<a>[su]8)\.(?P<b>[su]8)\.(?P<c>s32)", "sm_80")
mma("m8n8k4", r"\.(?P<d>f64)\.(?P<a>f64)\.(?P<b>f64)\.(?P<c>f64)", "sm_80")
mma("m16n8k(4|8|16)", r"\.(?P<d>f64)\.(?P<a>f64)\.(?P<b>f64)\.(?P<c>f64)", "sm_90")
mma(
    "m16n8k(16|32)",
    r"\.(?P<d>f16|f32)\.(?P<a>e[45]m[23])\.(?P<b>e[45]m[23])\.(?P<c>f16|f32)",
    "sm_89",
)


# ---- scalars
_INT = r"(?P<type>[us](16|32|64))"
_BITS = r"(?P<type>[bus](16|32|64))"
_REAL = r"(?P<type>f32|f64|f16|bf16|f16x2|bf16x2)"
rule(r"mov\.(pred|[bus](16|32|64)|f32|f64)", "mov")
rule(rf"(?P<op>add|sub|min|max)\.{_INT}", typed("arithmetic<{t}, emu::ptx::Op::{op}>"))
rule(rf"mul\.lo\.{_INT}", typed("arithmetic<{t}, emu::ptx::Op::MUL>"))
rule(r"mul\.wide\.(?P<type>[us](16|32))", typed("mul_wide<{t}, {w}>"))
rule(rf"mul\.hi\.{_INT}", typed("mul_hi<{t}, {w}>"))
rule(rf"mad\.lo\.{_INT}", typed("mad<{t}>"))
rule(rf"(?P<op>div|rem)\.{_INT}", typed("arithmetic<{t}, emu::ptx::Op::{op}>"))
rule(
    rf"(?P<op>add|sub|mul|div|min|max)(\.(rn|approx|full))?(\.ftz)?(\.NaN)?\.{_REAL}",
    typed("arithmetic<{t}, emu::ptx::Op::{op}>"),
)
rule(rf"fma(\.rn)?(\.ftz)?\.{_REAL}", typed("fma_<{t}>"))
rule(r"(?P<op>and|or|xor)\.(?P<type>b(16|32|64))", typed("arithmetic<{t}, emu::ptx::Op::{op}>"))
rule(rf"(?P<op>shl|shr)\.{_BITS}", typed("shift<{t}, emu::ptx::Op::{op}>"))
rule(r"(?P<op>neg|abs)\.(?P<type>s(16|32|64))", typed("function<{t}, emu::ptx::Fn::{op}>"))
rule(rf"(?P<op>neg|abs)(\.ftz)?\.{_REAL}", typed("function<{t}, emu::ptx::Fn::{op}>"))
rule(
    r"(?P<op>not|brev|popc|clz)\.(?P<type>b(16|32|64))", typed("function<{t}, emu::ptx::Fn::{op}>")
)
rule(
    r"(?P<op>ex2|lg2|rcp|rsqrt|sqrt|sin|cos)(\.approx|\.rn)?(\.ftz)?\.(?P<type>f32|f64|f16|f16x2|bf16|bf16x2)",
    typed("function<{t}, emu::ptx::Fn::{op}>"),
)
rule(
    r"(?P<op>tanh)\.approx\.(?P<type>f32|f16|f16x2|bf16|bf16x2)",
    typed("function<{t}, emu::ptx::Fn::{op}>"),
    "sm_75",
)
rule(
    r"setp\.(?P<op>eq|ne|lt|le|gt|ge)(\.ftz)?\.(?P<type>[bus](16|32|64)|f32|f64)",
    typed("setp<{t}, emu::ptx::Cmp::{op}>"),
)
rule(r"selp\.([bus](16|32|64)|f32|f64)", "selp")
rule(r"lop3\.b32", "lop3")
rule(r"prmt\.b32", "prmt")
rule(r"shf\.l\.wrap\.b32", "shf_l")
rule(r"shf\.r\.wrap\.b32", "shf_r")
rule(r"bfe\.(?P<type>[us]32)", typed("bfe<{t}>"))
rule(r"bfi\.b32", "bfi")


# ---- conversions
def _cvt(match: Match) -> str:
    to, source = _TYPES[match.group("to")], _TYPES[match.group("type")]
    rounds = {"z": "ZERO", "m": "DOWN", "p": "UP"}
    mode = rounds.get((match.group("round") or ".rn")[2], "NEAREST")
    return f"cvt<{to}, {source}, emu::ptx::Round::{mode}>"


_NUMERIC = r"[us](8|16|32|64)|f32|f64"
rule(rf"cvt(?P<round>\.r[nzmp]i?)?(\.ftz)?(\.sat)?\.(?P<to>{_NUMERIC})\.(?P<type>{_NUMERIC})", _cvt)
rule(r"cvt\.rn\.(?P<type>f16|bf16)\.f32", typed("cvt_to_small<{t}>"))
rule(r"cvt(\.ftz)?\.f32\.(?P<type>f16|bf16)", typed("cvt_from_small<{t}>"))
rule(r"cvt\.rn\.(?P<type>f16|bf16)x2\.f32", typed("cvt_to_pair<{t}, false>"), "sm_80")
rule(r"cvt\.rn\.relu\.(?P<type>f16|bf16)x2\.f32", typed("cvt_to_pair<{t}, true>"), "sm_80")
rule(r"cvt\.rna\.tf32\.f32", "cvt_tf32", "sm_80")
for _form in ("e4m3", "e5m2"):
    _code = f"TYPE_{_form.upper()}"
    rule(rf"cvt\.rn\.satfinite\.{_form}x2\.f32", f"cvt_to_float8_pair<{_code}>", "sm_89")
    rule(rf"cvt\.rn\.satfinite\.{_form}x2\.f16x2", f"cvt_half_to_float8_pair<{_code}>", "sm_89")
    rule(rf"cvt\.rn\.f16x2\.{_form}x2", f"cvt_float8_to_half_pair<{_code}>", "sm_89")

# ---- memory
_CACHE = r"(\.(ca|cg|cs|lu|cv|wb|wt|nc|relaxed|weak|volatile|gpu|cta|sys))*(\.L1::\w+)?(\.L2::\w+)*"
_ELEMENT = r"(\.v[248])?\.(?P<type>[bus](8|16|32|64)|f32|f64)"
for _space in ("global", "shared"):
    _is_shared = "true" if _space == "shared" else "false"
    _where = rf"\.{_space}(::cta|::cluster)?"
    rule(
        rf"ld(\.volatile|\.weak|\.relaxed\.\w+)?{_where}{_CACHE}{_ELEMENT}",
        typed(f"ld<{{t}}, {_is_shared}>"),
    )
    rule(
        rf"st(\.volatile|\.weak|\.relaxed\.\w+)?{_where}{_CACHE}{_ELEMENT}",
        typed(f"st<{{t}}, {_is_shared}>"),
    )
    rule(
        rf"ld\.acquire\.(cta|gpu|sys|cluster){_where}\.(?P<type>[bus](32|64))",
        typed(f"ld_acquire<sizeof({{t}}) == 4 ? TYPE_U32 : TYPE_U64, {_is_shared}, {{t}}>"),
    )
    rule(
        rf"st\.release\.(cta|gpu|sys|cluster){_where}\.(?P<type>[bus](32|64))",
        typed(f"st_release<sizeof({{t}}) == 4 ? TYPE_U32 : TYPE_U64, {_is_shared}, {{t}}>"),
    )

_ATOMIC_TYPES = {"b32": "U32", "b64": "U64"}


def _atomic(model: str, is_shared: str) -> Callable[[Match], str]:
    names = {"exch": "EXCHANGE"}

    def call(match: Match) -> str:
        kind, op = match.group("type"), match.group("op")
        code = _ATOMIC_TYPES.get(kind, kind.upper())
        held = {"f16": "uint16_t", "bf16": "uint16_t", "f16x2": "uint32_t", "bf16x2": "uint32_t"}
        held_type = held.get(kind, _TYPES[kind])
        return f"{model}<ATOMIC_{names.get(op, op.upper())}, TYPE_{code}, {is_shared}, {held_type}>"

    return call


_ORDER = r"(\.(relaxed|acquire|release|acq_rel))?(\.(cta|gpu|sys|cluster))?"
_ATOMIC_OPS = r"(?P<op>add|min|max|and|or|xor|exch|cas|inc|dec)(\.noftz)?"
_ATOMIC_TYPE = r"(?P<type>[bus](32|64)|f32|f64|f16|bf16|f16x2|bf16x2)"
for _space in ("global", "shared"):
    _is_shared = "true" if _space == "shared" else "false"
    for _name in ("red", "atom"):
        rule(
            rf"{_name}{_ORDER}\.{_space}(::cta|::cluster)?{_ORDER}\.{_ATOMIC_OPS}\.{_ATOMIC_TYPE}",
            _atomic(_name, _is_shared),
        )

# ---- order and other threads
rule(r"bar(rier)?(\.cta)?\.sync(\.aligned)?", "bar_sync")
rule(r"bar(rier)?(\.cta)?\.arrive(\.aligned)?", "bar_arrive")
rule(r"bar\.warp\.sync", "bar_warp")
rule(r"fence(\.sc|\.acq_rel)?\.(cta|gpu|sys|cluster)", "fence")
rule(r"membar\.(cta|gl|sys)", "fence")
rule(r"griddepcontrol\.(wait|launch_dependents)", "nothing", "sm_90")
rule(r"prefetch(u)?\.(global\.)?L[12](::\w+)?", "nothing")
rule(r"discard\.global\.L2", "nothing", "sm_80")
rule(r"createpolicy\.fractional\.L2::\w+(\.L2::\w+)?\.b64", "policy", "sm_80")
rule(r"createpolicy\.cvt\.L2\.b64", "policy", "sm_80")
rule(r"nanosleep\.u32", "sleep")
rule(r"trap", "trap")
rule(r"cvta\.to\.shared\.u(32|64)", "cvta_to_shared")
rule(r"cvta\.shared\.u64", "cvta_shared")
rule(r"cvta\.(to\.)?global\.u64", "cvta_global")
for _mode, _code in (("idx", "INDEX"), ("up", "UP"), ("down", "DOWN"), ("bfly", "XOR")):
    rule(rf"shfl\.sync\.{_mode}\.b32", f"shfl<SHUFFLE_{_code}>")
rule(r"vote\.sync\.ballot\.b32", "vote_ballot")
rule(r"vote\.sync\.any\.pred", "vote_any")
rule(r"vote\.sync\.all\.pred", "vote_all")
for _op, _code in (("add", "ADD"), ("and", "AND"), ("or", "OR"), ("xor", "XOR")):
    rule(rf"redux\.sync\.{_op}\.[bus]32", f"redux<VOTE_{_code}>", "sm_80")
for _op in ("min", "max"):
    for _sign in ("s", "u"):
        rule(
            rf"redux\.sync\.{_op}\.{_sign}32", f"redux<VOTE_{_op.upper()}_{_sign.upper()}>", "sm_80"
        )
