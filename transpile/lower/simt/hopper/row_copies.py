"""The kernel that copies rows of a tensor to where other rows can start."""

from __future__ import annotations

from tile2c.transpile.ir.dtypes import INT32, DType
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Assign,
    Branch,
    CStmt,
    Declarator,
    Element,
    Entry,
    EntryParam,
    Local,
    Loop,
    Wide,
)

THREADS = 256
_TURNS = 8  # elements of a thread that are on their way at once
CHUNK = THREADS * _TURNS  # columns of a block


def size_param(name: str, value: Expr) -> EntryParam:
    return EntryParam(name=name, kind="size", dtype=INT32, value=value)


def copy_entry(name: str, kind: DType) -> Entry:
    """An entry point for elements of one type: from, to, columns and both pitches."""

    def pointer(what: str, written: bool) -> EntryParam:
        return EntryParam(name=what, kind="tensor", dtype=kind, written=written)

    params = (
        pointer("from", False),
        pointer("to", True),
        *(size_param(what, const(0)) for what in ("columns", "from_pitch", "to_pitch")),
    )
    chunks, chunk = b.local("chunks"), b.local("blockIdx.x")
    row, first, turn, column = (b.local(x) for x in ("row", "first", "turn", "column"))
    inside = b.less(column, b.local("columns"))
    place = Local(
        dtype=INT32,
        names=(Declarator(name="column", value=b.add(first, b.mul(turn, const(THREADS)))),),
    )

    def at(array: str, pitch: str) -> Element:
        start = b.mul(Wide(dtype=INT32, a=row), b.local(pitch))
        return Element(dtype=kind, array=array, subscripts=(b.add(start, column),))

    kept = Element(dtype=kind, array="kept", subscripts=(turn,))

    def turns(move: Assign) -> CStmt:
        return Loop(
            var="turn",
            start=const(0),
            stop=const(_TURNS),
            step=const(1),
            body=(place, Branch(condition=inside, then=(move,))),
            unroll=True,
            dtype=INT32,
        )

    body: tuple[CStmt, ...] = (
        Local(
            dtype=INT32,
            names=(
                Declarator(name="chunks", value=b.ceil_div(b.local("columns"), const(CHUNK))),
                Declarator(name="row", value=b.div(chunk, chunks)),
                Declarator(
                    name="first",
                    value=b.add(b.mul(b.mod(chunk, chunks), const(CHUNK)), b.local("threadIdx.x")),
                ),
            ),
        ),
        Local(
            dtype=kind,
            names=(Declarator(name="kept", dims=(const(_TURNS),)),),
            const=False,
            remark="all on their way before the first is stored",
        ),
        turns(Assign(target=kept, value=at("from", "from_pitch"))),
        turns(Assign(target=at("to", "to_pitch"), value=kept)),
    )
    return Entry(
        name=name,
        params=params,
        threads=(THREADS, 1, 1),
        body=body,
        comments=(
            "Copies rows between a tensor and a workspace, where they start as TMA wants them: a block has "
            f"{CHUNK} columns of a row, {_TURNS} of each thread.",
        ),
    )
