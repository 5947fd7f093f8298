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
    needs    the first architecture that has it, `sm_80`; `sm_90a` means exactly that one
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
        if want[1]:
            return have == want
        return have[0] >= want[0]


def _level(arch: str) -> tuple[int, str] | None:
    found = re.fullmatch(r"sm_(\d+)([af]?)", arch)
    return (int(found.group(1)), found.group(2)) if found else None


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


# ---- asynchronous copies
_HINTS = r"(\.L2::(64|128|256)B)?"
rule(rf"cp\.async\.(ca|cg)\.shared(::cta)?\.global{_HINTS}", "cp_async", "sm_80")
rule(rf"cp\.async\.(ca|cg)\.shared(::cta)?\.global\.L2::cache_hint{_HINTS}", "cp_async_hint", "sm_80")
rule(r"cp\.async\.commit_group", "cp_async_commit", "sm_80")
rule(r"cp\.async\.wait_group", "cp_async_wait", "sm_80")
rule(r"cp\.async\.wait_all", "cp_async_wait_all", "sm_80")


# ---- matrices
def _matrix_move(model: str) -> Callable[[Match], str]:
    def call(match: Match) -> str:
        transposed = "true" if match.group("trans") else "false"
        return f"{model}<{match.group('count')}, {transposed}>"

    return call


_MOVE = r"\.sync\.aligned\.m8n8\.x(?P<count>[124])(?P<trans>\.trans)?\.shared(::cta)?\.b16"
rule(r"ldmatrix" + _MOVE, _matrix_move("ldmatrix"), "sm_75")
rule(r"stmatrix" + _MOVE, _matrix_move("stmatrix"), "sm_90")

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
    pattern = _MMA.replace(r"m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)", rf"(?={shapes}\.)m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)")
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
mma("m16n8k(16|32)", r"\.(?P<d>f16|f32)\.(?P<a>e[45]m[23])\.(?P<b>e[45]m[23])\.(?P<c>f16|f32)", "sm_89")
