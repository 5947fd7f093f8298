"""Kernels with one wait, barrier or guard taken out: each has to be reported by the emulator.

All of them are compiled as one text: the variable `removed` says at run time which thing is missing.
Elections are no guards: where every lane holds the same value, one writes it; with all of them writing,
the bytes are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ELECTION = re.compile(r"(lane|thread|warp|wave|threadIdx\.x)( [%/] \d+)* (==|!=) 0")
_ALL = "(1 << 20)"  # more elements than any vector has: nothing is left out
# Weak, so that the compiler takes no value for granted; constant, so that reading it is no access.
_SWITCH = (
    'extern "C" { __attribute__((weak, visibility("default"))) int removed_thing; '
    'extern const int removed __attribute__((alias("removed_thing"), visibility("default"))); }'
)

# calls that order something, by what the defect is called
ORDERING = {
    "barrier": ("__syncthreads", "consumers_sync", "warpgroup_sync", "threads_sync", "PipeBarrier",
                "order"),
    "wait": ("copies_wait", "copies_wait_all", "cluster_wait", "barrier_wait", "mma_wait",
             "tma_store_wait_read", "tma_store_wait",
             "WaitFlag", "CrossCoreWaitFlag", "__sync_compute", "__sync_io", "__sync_move",
             "__sync_io_move_compute"),
    "commit": ("copies_commit", "mma_commit", "tma_store_commit"),
    "arrival": ("barrier_expect", "barrier_bytes", "barrier_arrive", "barrier_arrive_behind",
                "threads_arrive", "cluster_arrive", "barrier_init", "SetFlag",
                "CrossCoreSetFlag"),
    "fence": ("barriers_visible", "mma_begin", "publish_to_async", "clusters_sync"),
    "queue": ("EnQue", "FreeTensor"),
    "ring": ("ring.advance",),
}  # fmt: skip
_KIND = {name: kind for kind, names in ORDERING.items() for name in names}
_CALL = re.compile(
    rf"(?:\w+\.(?=EnQue|FreeTensor))?(?<![\w.])({'|'.join(map(re.escape, _KIND))})(<[^;()]*>)?\("
)
_TAKEN = re.compile(r"\w+ = \w+\.DeQue<\w+>\(\);")
_HANDED = re.compile(r"(LocalTensor<\w+>) \w+ = (\w+\.AllocTensor<\w+>\(\);)")
_IF = re.compile(r"\bif \(")
_LEAVES = re.compile(r"\s*\{?\s*(continue|return|break);")
_PREFILL = re.compile(r"\s*\{\s*(?:Duplicate|clear_tile|__bang_write_zero)\(")
_CHOICE = re.compile(
    r"(?<![<>=!])=\s+(?!.*\bmin\()([^;=?]*[<>=][^;?]*?) \? ([^;:]*?) : (0|0\.f|half\(0\.f\)|T\(0\.f\));"
)
_CLAMP = re.compile(r"=\s+([^;=?<]+?) < (\w+)\s+\?\s+([^;?:]+?)\s+: (\w+);")
_LAST = re.compile(r"\b(?:load|store)_(?:vector|elements)(?:<\w+>)?\([^;]*?,\s+(\w+ - [\w* +]+)\);")
_REST = re.compile(r" \? (\w+ - [\w* +]+) : 0;")

Edit = tuple[int, str]  # what is inserted where


@dataclass(frozen=True)
class Defect:
    """What is missing while `removed` holds `number`; `line` is where it stands."""

    kind: str
    number: int
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.kind} on line {self.line}: {self.what}"


def switched(text: str) -> tuple[str, tuple[Defect, ...]]:
    """The text with a switch at each wait, barrier and guard of its kernels, and what they are.

    Helper functions are left alone, and so is what the author wrote.
    """
    found: list[Defect] = []
    edits: list[Edit] = []
    for first, last in _kernels(text):
        body = _without_comments(text[first:last])
        for at, kind, changes in sorted(_changes(body), key=lambda change: change[0]):
            number = len(found) + 1
            line = text.count("\n", 0, first + at) + 1
            what = text.split("\n")[line - 1].strip()
            found.append(Defect(kind, number, line, what))
            edits += [(first + place, added.replace("#", str(number))) for place, added in changes]
    for place, added in sorted(edits, key=lambda edit: edit[0], reverse=True):
        text = text[:place] + added + text[place:]
    return _with_switch(text), tuple(found)


def _with_switch(text: str) -> str:
    """The variable in the first empty line, so that lines keep their numbers."""
    blank = text.index("\n\n") + 1
    return text[:blank] + _SWITCH + text[blank:]


def _kernels(text: str) -> Iterator[tuple[int, int]]:
    """Where the bodies of kernels stand: entries, and the functions that several of them share."""
    shared = r"static __device__ void \w+_(?:block|produce|consume)\("
    head = rf'^(?:extern "C" __(?:mlu_)?global__|{shared})'
    for found in re.finditer(head, text, re.MULTILINE):
        start = re.compile(r"\) \{.*\n").search(text, found.start()).end()  # type: ignore[union-attr]
        yield start, text.index("\n}", start)


def _without_comments(text: str) -> str:
    """The same with spaces for comments, so that places stay."""
    return re.sub(r"//[^\n]*", lambda found: " " * len(found[0]), text)


def _changes(body: str) -> Iterator[tuple[int, str, list[Edit]]]:
    """(place, kind, what to insert); `#` stands for the defect's number."""
    for call in _CALL.finditer(body):
        yield call.start(), _KIND[call[1]], [(call.start(), "if (removed != #) ")]
        if call[1].endswith(("_wait", "_read")) and call[2]:
            weaker = f"if (removed == #) {call[1]}<{call[2][1:-1]} + 1>(); else "
            yield call.start(), "weaker wait", [(call.start(), weaker)]
    for taken in _TAKEN.finditer(body):
        yield taken.start(), "queue", [(taken.start(), "if (removed != #) ")]
    for handed in _HANDED.finditer(body):
        yield handed.start(), "queue", [(handed.start(2), f"removed == # ? {handed[1]}() : ")]
    for guard in _IF.finditer(body):
        yield from _guards(body, guard.end())
    for choice in _CHOICE.finditer(body):
        yield (
            choice.start(),
            "guard",
            [(choice.start(1), "removed == # || ("), (choice.end(1), ")")],
        )
    for clamp in _CLAMP.finditer(body):
        if clamp[1].split() == clamp[3].split() and clamp[2] == clamp[4]:
            yield clamp.start(), "edge", [(clamp.start(1), f"removed == # ? {clamp[2]} : ")]
    for edge in (*_LAST.finditer(body), *_REST.finditer(body)):
        yield edge.start(1), "edge", [(edge.start(1), f"removed == # ? {_ALL} : ")]


def _guards(body: str, start: int) -> Iterator[tuple[int, str, list[Edit]]]:
    """Each part of a condition: taken out, it lets everyone pass."""
    end = _closing(body, start)
    leaves = bool(_LEAVES.match(body, end + 1))
    orders = bool(_CALL.search(_guarded(body, end + 1)))
    prefill = bool(_PREFILL.match(body, end + 1))
    for first, last in _parts(body, start, end, "||" if leaves else "&&"):
        part = body[first:last]
        if ELECTION.fullmatch(part.strip("()")) and not orders:
            continue
        if prefill:
            yield first, "prefill", [(first, "(removed != # && ("), (last, "))")]
        elif leaves:
            yield first, "guard", [(first, "(removed != # && ("), (last, "))")]
        else:
            yield first, "guard", [(first, "(removed == # || ("), (last, "))")]


def _guarded(body: str, start: int) -> str:
    """What a condition that ends before `start` guards."""
    opened = re.compile(r"\s*\{").match(body, start)
    end = _closing(body, opened.end(), "{}") if opened else body.index(";", start)
    return body[start : end + 1]


def _closing(text: str, start: int, pair: str = "()") -> int:
    """Where the bracket that stands before `start` is closed."""
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] == pair[0]) - (text[place] == pair[1])
        if not depth:
            return place
    raise ValueError("a bracket stays open")


def _parts(text: str, start: int, end: int, between: str) -> Iterator[tuple[int, int]]:
    """The operands of `between` at the top of text[start:end]; all of it where others stand there."""
    cuts: list[int] = []
    depth = 0
    for place in range(start, end):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[place], 0)
        if not depth and text[place : place + 2] in ("&&", "||"):
            if text[place : place + 2] != between:
                cuts = []
                break
            cuts.append(place)
    firsts = [start, *(cut + 3 for cut in cuts)]
    lasts = [*(cut - 1 for cut in cuts), end]
    yield from zip(firsts, lasts, strict=True)
