"""Loops whose copies run a turn ahead and a turn behind: load, work and store of three rounds at once.

reads   steps without queues and flags        writes  steps with staged loops, tiles with places
In each turn the loads of one round, the work of the round before and the stores of the one before
that are given to their units; then all of them wait for each other. Tiles that are loaded or stored
so have two copies, and a turn's number says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Binary, Compare, Const, Expr, Logical, Var, const
from tile2c.transpile.lower.cores.layouts import is_zero, plus, times
from tile2c.transpile.lower.cores.names import Names
from tile2c.transpile.lower.cores.plan import (
    Branch,
    CopyIn,
    CopyOut,
    EndOfTurn,
    Local,
    Loop,
    Order,
    Step,
    TakeCopy,
    Tile,
    VectorCall,
    WhileLoop,
)
from tile2c.transpile.lower.cores.queues import accesses, in_lives, out_lives
from tile2c.transpile.lower.cores.touched import (
    arrives,
    changing,
    copies_in,
    is_copy,
    leaves,
    loads_from,
    names_in,
    stored_otherwise,
    stores_to,
    tensors_of,
)
from tile2c.transpile.record import record

Stage = Literal["load", "work", "store"]


@record(kw_only=True)
class Rounds:
    """How a loop counts: round r is `first + r * step`, and there are `count` of them."""

    var: Var
    first: Expr
    step: Expr
    count: Expr
    blocks: bool  # its rounds are blocks, of which none sees what another stores


def stage_loops(
    body: tuple[Step, ...], tiles: Mapping[str, Tile], names: Names
) -> tuple[tuple[Step, ...], dict[str, Tile]]:
    """Every loop that the author lets overlap, staged where its copies allow it."""
    placed = dict(tiles)
    everywhere = body

    def visit(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        new: list[Step] = []
        for step in steps:
            if isinstance(step, Loop):
                step = replace(step, body=visit(step.body))
                found = _staged_loop(step, everywhere, placed, names)
                new += found or (step,)
                continue
            if isinstance(step, WhileLoop):
                step = replace(step, body=visit(step.body))
            elif isinstance(step, Branch):
                step = replace(step, then=visit(step.then), orelse=visit(step.orelse))
            new.append(step)
        return tuple(new)

    return visit(body), placed


def _staged_loop(
    step: Loop, everywhere: tuple[Step, ...], placed: dict[str, Tile], names: Names
) -> tuple[Step, ...] | None:
    if step.stages < 2 or not (isinstance(step.step, Const) and int(step.step.value) > 0):
        return None
    count = step.stop
    if not is_zero(step.start):
        count = Binary(dtype=INT32, op="-", a=step.stop, b=step.start)
    if step.step.value != 1:
        last = const(int(step.step.value) - 1)
        count = Binary(dtype=INT32, op="truncdiv", a=plus(count, last), b=step.step)
    rounds = Rounds(var=step.var, first=step.start, step=step.step, count=count, blocks=False)
    found = staged(step.body, rounds, everywhere, placed, names)
    if found is None:
        return None
    first, *rest = found
    return (replace(first, comments=(*step.comments, *first.comments), span=step.span), *rest)


def staged(
    body: tuple[Step, ...],
    rounds: Rounds,
    everywhere: tuple[Step, ...],
    placed: dict[str, Tile],
    names: Names,
) -> tuple[Step, ...] | None:
    """The loop over `body` in turns, or None where nothing can be loaded ahead; sets places."""
    if any(leaves(step) for step in body):
        return None
    finder = _Finder(body, everywhere, rounds)
    loads = finder.loaded(placed)
    if not loads:
        return None
    stores = finder.stored(placed, loads)
    for name in loads:
        placed[name] = replace(placed[name], place="in", position="VECIN", depth=2)
    for name in stores:
        placed[name] = replace(placed[name], place="out", position="VECOUT", depth=2)
    return _turns(body, rounds, loads, stores, names)


class _Finder:
    """Which tiles of a loop's body are only loaded at its start, or only stored at its end."""

    def __init__(
        self, body: tuple[Step, ...], everywhere: tuple[Step, ...], rounds: Rounds
    ) -> None:
        self.body = body
        self.everywhere = everywhere
        self.rounds = rounds
        self.changing = changing(body)

    def loaded(self, placed: Mapping[str, Tile]) -> tuple[str, ...]:
        return tuple(name for name in placed if self._is_loaded(name, placed[name]))

    def stored(self, placed: Mapping[str, Tile], loads: Sequence[str]) -> tuple[str, ...]:
        found = [name for name in placed if name not in loads and self._is_stored(name)]
        tensors = {name: tensors_of(self.body, name) for name in found}
        split = {tensor for each in tensors.values() for tensor in each}
        split &= stored_otherwise(self.body, set(found))
        return tuple(name for name in found if not tensors[name] & split)

    def _is_loaded(self, name: str, tile: Tile) -> bool:
        lives = in_lives(self.body, name)
        if tile.place != "work" or lives is None or len(lives) != 1 or not self._only_here(name):
            return False
        for step in self.body:
            if "load" not in accesses(step, name) and "prefill" not in accesses(step, name):
                continue
            if not self._repeatable(step):
                return False
            for copy in copies_in(step):
                if self._written_before(copy.tensor):
                    return False
        return True

    def _is_stored(self, name: str) -> bool:
        lives = out_lives(self.body, name)
        if lives is None or len(lives) != 1 or not self._only_here(name):
            return False
        steps = [step for step in self.body if "store" in accesses(step, name)]
        if any(not is_copy(step) or not self._repeatable(step) for step in steps):
            return False
        if any(
            isinstance(copy, CopyOut) and copy.adds for step in steps for copy in copies_in(step)
        ):
            return False  # the core waits for additions
        read = {copy.tensor for step in self.body for copy in copies_in(step) if arrives(copy)}
        return not (tensors_of(self.body, name) & read) or (
            self.rounds.blocks
            and not any(self._read_after(tensor) for tensor in tensors_of(self.body, name))
        )

    def _only_here(self, name: str) -> bool:
        """Whether nothing outside of this body touches the tile."""
        here = sum(len(accesses(step, name)) for step in self.body)
        return here == sum(len(accesses(step, name)) for step in self.everywhere)

    def _repeatable(self, step: Step) -> bool:
        """Whether the step means the same a turn earlier or later: names in it are of the round."""
        return not (names_in(step) & self.changing)

    def _written_before(self, tensor: str) -> bool:
        """Whether a load that runs ahead could miss a store to its tensor."""
        stores = [step for step in self.body if stores_to(step, tensor)]
        if not stores or not self.rounds.blocks:
            return bool(stores)
        loads = [n for n, step in enumerate(self.body) if loads_from(step, tensor)]
        return any(self.body.index(store) <= max(loads) for store in stores)

    def _read_after(self, tensor: str) -> bool:
        stores = [n for n, step in enumerate(self.body) if stores_to(step, tensor)]
        loads = [n for n, step in enumerate(self.body) if loads_from(step, tensor)]
        return any(load >= min(stores) for load in loads)


def _turns(
    body: tuple[Step, ...],
    rounds: Rounds,
    loads: tuple[str, ...],
    stores: tuple[str, ...],
    names: Names,
) -> tuple[Step, ...]:
    turn = Var(dtype=INT32, name=names.fresh("turn", f"{rounds.var.name}_turn"), kind="loop")
    count: Expr = rounds.count
    before: tuple[Step, ...] = ()
    if not isinstance(count, Const | Var):
        name = names.fresh("turns", f"{rounds.var.name}_turns")
        before = (Local(name=name, dtype=INT32, value=count),)
        count = Var(dtype=INT32, name=name, kind="temporary")
    behind = 2 if stores else 1
    parts = _parts(body, loads, stores, changing(body))
    inner: list[Step] = []
    told: set[str] = set()  # scalars whose comments stand already
    for stage in ("load", "store", "work"):
        steps = parts[stage]
        if stage == "store" and not stores:
            continue
        late = {"load": 0, "work": 1, "store": 2}[stage]
        own = _with_round(steps, body, rounds, turn, late, told)
        copies = [
            TakeCopy(tile=name, copy=_copy_number(turn, late))
            for name in (*loads, *stores)
            if any(accesses(step, name) for step in steps)
        ]
        inner.append(
            Branch(
                condition=_runs(turn, count, late, behind),
                then=(*copies, *own),
                comments=(_WHAT[stage],),
            )
        )
    inner.append(EndOfTurn(comments=("the units meet: what each was given is done",)))
    loop = Loop(
        var=turn,
        start=const(0),
        stop=plus(count, const(behind)),
        step=const(1),
        body=tuple(inner),
        comments=(
            "each turn loads a round, works on the one before and stores the one before that",
        )
        if stores
        else ("each turn loads a round and works on the one before",),
    )
    return (*before, loop)


_WHAT = {
    "load": "the next round's tiles",
    "store": "the results of the round before this one",
    "work": "this round",
}


def _copy_number(turn: Var, late: int) -> Expr:
    """Two rounds apart share a copy."""
    at: Expr = turn if late != 1 else plus(turn, const(1))
    return Binary(dtype=INT32, op="truncmod", a=at, b=const(2))


def _runs(turn: Var, count: Expr, late: int, behind: int) -> Expr:
    """The turns in which a stage has a round of its own."""
    parts: list[Expr] = []
    if late:
        parts.append(Compare(dtype=BOOL, op=">=", a=turn, b=const(late)))
    if late < behind:
        op: Literal["<", "<="] = "<=" if late == 1 else "<"
        parts.append(Compare(dtype=BOOL, op=op, a=turn, b=count))
    if len(parts) == 1:
        return parts[0]
    return Logical(dtype=BOOL, op="and", a=parts[0], b=parts[1])


def _parts(
    body: tuple[Step, ...], loads: tuple[str, ...], stores: tuple[str, ...], changing: set[str]
) -> dict[Stage, tuple[Step, ...]]:
    """The steps of each stage, without the scalars that each names for itself."""
    found: dict[Stage, list[Step]] = {"load": [], "work": [], "store": []}
    moved: tuple[str, ...] = ()  # the author's loop, which stands above its number of rounds
    for step in body:
        done = {access for name in loads for access in accesses(step, name)}
        out = {access for name in stores for access in accesses(step, name)}
        if done & {"load", "prefill"}:
            found["load"].append(_ahead(step))
            found["load"] += _filled(step)
        elif "store" in out:
            found["store"].append(_ahead(step))
        elif isinstance(step, Local) and step.const and step.name not in changing:
            moved = (*moved, *(step.comments if _of_loop(step) else ()))
        else:
            found["work"].append(replace(step, comments=(*moved, *step.comments)))
            moved = ()
    return {stage: tuple(steps) for stage, steps in found.items()}


def _filled(step: Step) -> tuple[Step, ...]:
    """The wait between zeros and the copy over them, which another unit does."""
    if isinstance(step, VectorCall) and step.prefills:
        return (Order(before="V", after="MTE2", remark="the zeros are there before the copy"),)
    return ()


def _ahead(step: Step) -> Step:
    """The copies in it as copies that the core does not wait for."""
    if isinstance(step, CopyIn | CopyOut):
        return replace(step, ahead=True)
    if isinstance(step, Loop):
        return replace(step, body=tuple(_ahead(inner) for inner in step.body))
    if isinstance(step, Branch) and step.prefills:
        wait = Order(before="V", after="MTE2", remark="the zeros are there before the copy")
        return replace(step, then=(*step.then, wait))
    if isinstance(step, Branch):
        then = tuple(_ahead(inner) for inner in step.then)
        return replace(step, then=then, orelse=tuple(_ahead(inner) for inner in step.orelse))
    return step


def _with_round(
    steps: tuple[Step, ...],
    body: tuple[Step, ...],
    rounds: Rounds,
    turn: Var,
    late: int,
    told: set[str],
) -> tuple[Step, ...]:
    """The steps below the names of their round: its number, and the scalars that they ask for.

    The comments of a scalar stand where it is named first; `told` has these, and gets more.
    """
    needed: set[str] = set()
    own = {step.name for step in steps if isinstance(step, Local)}
    named: list[Step] = []
    for step in steps:
        needed |= names_in(step)
    for step in reversed([step for step in body if isinstance(step, Local) and step.const]):
        if step.name in needed and step.name not in own:
            needed |= names_in(step)
            own_words = () if step.name in told else _more_than_itself(step)
            named.append(replace(step, comments=own_words))
            told.add(step.name)
    round_here: Expr = turn if late == 0 else Binary(dtype=INT32, op="-", a=turn, b=const(late))
    value = plus(rounds.first, times(round_here, rounds.step))
    if rounds.var.name in needed:
        named.append(Local(name=rounds.var.name, dtype=INT32, value=value))
    return (*reversed(named), *steps)


def _of_loop(step: Local) -> bool:
    """Whether the scalar is the number of rounds of the author's loop."""
    return any(text.startswith("for ") and " in " in text for text in step.comments)


def _more_than_itself(step: Local) -> tuple[str, ...]:
    """Its comments, but for the author's assignment of the same name, and those of a loop."""
    if _of_loop(step):
        return ()
    return tuple(text for text in step.comments if not text.startswith(f"{step.name} = "))
