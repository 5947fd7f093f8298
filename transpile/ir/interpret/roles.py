"""Threads that part and wait for each other: each role runs by itself, until all of them wait.

A role is a set of threads that take the same side of every condition on the thread index. One role runs
at a time, in a fixed order; it goes on until it waits for what another has to do. Where no role can go
on the program is in a deadlock, and the lines are told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from tile2c.transpile.diagnostics import Span
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.expr import Buffer, Expr
from tile2c.transpile.ir.forms import Launch, Stmt
from tile2c.transpile.ir.interpret.evaluate import evaluate
from tile2c.transpile.ir.interpret.numbers import Array
from tile2c.transpile.ir.interpret.state import MeaningError, State
from tile2c.transpile.ir.walk import loads, statements, variables

Body = Callable[[State, tuple[Stmt, ...]], None]


class _GivenUp(BaseException):
    """Another role has failed: this one is not to go on."""


@dataclass(slots=True)
class Barrier:
    """An mbarrier: what its phase still waits for, and how many phases are over."""

    name: str
    count: int
    pending: int
    bytes: int = 0
    over: int = 0

    def passed(self, parity: int) -> bool:
        """Whether the phase of this parity is over; before the first one, that of parity 1 is."""
        return (self.over - 1) % 2 == parity % 2

    def lacks(self, parity: int) -> str:
        """What a wait for the phase of this parity waits for."""
        missing = f"{self.pending} of {self.count} arrivals"
        if self.bytes:
            missing += f" and {self.bytes} bytes"
        phase = f"the phase of parity {parity % 2} of {self.name}"
        return f"{phase}, whose phase {self.over} lacks {missing}"

    def settle(self) -> None:
        if self.pending == 0 and self.bytes == 0:
            self.pending, self.over = self.count, self.over + 1


@dataclass(slots=True)
class _Meeting:
    """Roles that have come to a statement that they do together."""

    came: set[int] = field(default_factory=set)
    turn: int = 0


@dataclass(slots=True)
class _Named:
    """A named barrier: threads that are there, and how often it has opened."""

    here: int = 0
    opened: int = 0


class Role:
    """One set of threads with its own state; `ready` says when it can go on."""

    def __init__(self, number: int, members: Array, state: State) -> None:
        self.number, self.members, self.state = number, members, state
        self.go = threading.Semaphore(0)
        self.ready: Callable[[], bool] = lambda: True
        self.why: Callable[[], str] = str
        self.at: Span | None = None
        self.done = False
        self.fault: BaseException | None = None

    def words(self) -> str:
        first, last = int(self.members[0]), int(self.members[-1])
        return f"thread {first}" if first == last else f"threads {first} to {last}"


class Roles:
    """The roles of one block, their barriers, and whose turn it is."""

    def __init__(self, launch: Launch, conditions: dict[int, Array]) -> None:
        self.conditions = conditions  # by identity of the branch: a bool for each thread
        self.roles: list[Role] = []
        self.barriers: dict[tuple[str, int], Barrier] = {
            (group.buffer.name, slot): Barrier(_said(group, slot), count, count)
            for group in launch.barriers
            for slot, count in enumerate(group.counts)
        }
        self.meetings: dict[int, _Meeting] = {}
        self.named: dict[int, _Named] = {}
        self.turn = threading.Semaphore(0)
        self.over = False

    # ---- running

    def run(self, body: tuple[Stmt, ...], execute: Body) -> None:
        """All roles to their ends; raises MeaningError where none can go on."""
        threads = [
            threading.Thread(target=self._play, args=(role, body, execute), daemon=True)
            for role in self.roles
        ]
        for thread in threads:
            thread.start()
        try:
            self._conduct()
        finally:
            self.over = True
            for role in self.roles:
                role.go.release()
            for thread in threads:
                thread.join()

    def _conduct(self) -> None:
        while True:
            waiting = [role for role in self.roles if not role.done]
            if not waiting:
                return
            able = [role for role in waiting if role.ready()]
            if not able:
                raise self._deadlock(waiting)
            for role in able:
                if not role.ready():
                    continue
                role.go.release()
                self.turn.acquire()
                if role.fault is not None:
                    raise role.fault

    def _play(self, role: Role, body: tuple[Stmt, ...], execute: Body) -> None:
        role.go.acquire()
        try:
            if not self.over:
                with np.errstate(all="ignore"):
                    execute(role.state, body)
        except _GivenUp:
            pass
        except BaseException as fault:
            role.fault = fault
        role.done = True
        self.turn.release()

    def wait(self, role: Role, ready: Callable[[], bool], why: Callable[[], str]) -> None:
        """Lets others run until this role can go on."""
        if ready():
            return
        role.ready, role.why, role.at = ready, why, role.state.span
        self.turn.release()
        role.go.acquire()
        if self.over:
            raise _GivenUp
        role.ready = lambda: True

    def _deadlock(self, waiting: Sequence[Role]) -> MeaningError:
        parts = []
        for role in waiting:
            line = f" on line {role.at.line}" if role.at is not None else ""
            parts.append(f"{role.words()} wait{line} for {role.why()}")
        return MeaningError(f"deadlock: {'; '.join(parts)}", waiting[0].at)

    # ---- what roles do together

    def together(self, state: State, stmt: Stmt, act: Callable[[], None]) -> None:
        """Done once, by the last of the roles that get here; the others wait for it."""
        role, group = self._role(state), state.present
        if len(group) < 2:
            act()
            return
        meeting = self.meetings.setdefault(id(stmt), _Meeting())
        meeting.came.add(role.number)
        turn = meeting.turn
        if meeting.came >= group:
            act()
            meeting.came.clear()
            meeting.turn += 1
            return

        def why() -> str:
            missing = [x.words() for x in self.roles if x.number in group - meeting.came]
            return f"{' and '.join(missing)} to come to a statement that they do together"

        self.wait(role, lambda: meeting.turn != turn, why)

    def first(self, state: State) -> bool:
        """Whether the first thread of all that get here is in this role."""
        return self._role(state).number == min(
            state.present, key=lambda number: int(self.roles[number].members[0])
        )

    def narrowed(self, state: State, branch: Stmt, side: bool) -> frozenset[int]:
        """The roles that take a side of a branch, of those that get to it."""
        chosen = self.conditions.get(id(branch))
        if chosen is None:
            return state.present
        return frozenset(
            number for number in state.present if chosen[self.roles[number].members[0]] == side
        )

    def _role(self, state: State) -> Role:
        return self.roles[state.role]

    # ---- barriers

    def arrive(self, state: State, stmt: forms.BarrierArrive) -> None:
        for barrier, threads in self._of(state, stmt.barrier, stmt.index):
            if stmt.bytes is not None:
                barrier.bytes += threads * int(np.max(evaluate(state, stmt.bytes)))
            if stmt.arrives:
                if threads > barrier.pending:
                    raise state.fail(
                        f"{threads} arrivals at {barrier.name}, whose phase {barrier.over} lacks "
                        f"{barrier.pending} of {barrier.count}"
                    )
                barrier.pending -= threads
            barrier.settle()

    def wait_for(self, state: State, stmt: forms.BarrierWait) -> None:
        parity = int(np.max(evaluate(state, stmt.parity)))
        for barrier, _ in self._of(state, stmt.barrier, stmt.index):
            role = self._role(state)
            self.wait(
                role,
                partial(barrier.passed, parity),
                partial(barrier.lacks, parity),
            )

    def _of(self, state: State, group: Buffer, index: Expr) -> list[tuple[Barrier, int]]:
        """The barriers that the active threads name, with how many threads name each."""
        slots = np.broadcast_to(evaluate(state, index), state.lanes)
        active = np.broadcast_to(state.mask, state.lanes)
        found: list[tuple[Barrier, int]] = []
        for slot, count in zip(*np.unique(slots[active], return_counts=True), strict=True):
            barrier = self.barriers.get((group.name, int(slot)))
            if barrier is None:
                raise state.fail(
                    f"{group.name}[{int(slot)}] is outside its {group.shape[0]} barriers"
                )
            found.append((barrier, int(count)))
        return found

    def sync(self, state: State, stmt: forms.AuthorSync) -> None:
        if stmt.barrier is None:
            self.together(state, stmt, lambda: None)
            return
        named = self.named.setdefault(stmt.barrier, _Named())
        opened = named.opened
        named.here += int(np.count_nonzero(np.broadcast_to(state.mask, state.lanes)))
        if named.here >= stmt.count:
            named.here, named.opened = 0, named.opened + 1
        elif stmt.waits:
            self.wait(
                self._role(state),
                lambda: named.opened != opened,
                lambda: (
                    f"{stmt.count - named.here} of {stmt.count} threads at named barrier "
                    f"{stmt.barrier}"
                ),
            )


def _said(group: forms.Barriers, slot: int) -> str:
    return group.buffer.name if group.single else f"{group.buffer.name}[{slot}]"


# ---- who is who


def scheduled(launch: Launch) -> bool:
    """Whether threads wait for each other by name: only then does it matter who runs when."""
    return bool(launch.barriers) or any(
        isinstance(stmt, forms.AuthorSync) and stmt.barrier is not None
        for stmt in statements(launch.body)
    )


def roles_of(launch: Launch, block: State) -> Roles:
    """The roles of a block that has not begun."""
    conditions = _conditions(launch, block)
    signature = np.zeros(block.count, np.int64)
    for taken in conditions.values():
        _, signature = np.unique(signature * 2 + taken, return_inverse=True)
    found = Roles(launch, conditions)
    order = dict.fromkeys(signature.tolist())
    for number, kind in enumerate(order):
        members = np.flatnonzero(signature == kind)
        found.roles.append(Role(number, members, _state(block, number, members, found)))
    everyone = frozenset(range(len(found.roles)))
    for role in found.roles:
        role.state.present = everyone
    return found


def _state(block: State, number: int, members: Array, roles: Roles) -> State:
    """The block as these threads see it: memory is shared, variables are their own."""
    env = {
        name: value[members] if np.shape(value) == (block.count,) else value
        for name, value in block.env.items()
    }
    state = State(
        block.numbers, block.tensors, (len(members), 1, 1), env, block.tiles, dict(block.arrays),
        dict(block.scalars), block.views, memory=block.memory,
    )  # fmt: skip
    state.lanes = (len(members),)
    state.role, state.roles = number, roles
    return state


def _conditions(launch: Launch, block: State) -> dict[int, Array]:
    """Of the branches that depend on the thread alone: which threads take them."""
    found: dict[int, Array] = {}
    known = {var.name for var in launch.thread_vars}
    for stmt in statements(launch.body):
        if isinstance(stmt, forms.Let) and _only(stmt.value, known):
            known.add(stmt.var.name)
            block.env[stmt.var.name] = np.array(evaluate(block, stmt.value))
        if isinstance(stmt, forms.If) and _only(stmt.condition, known):
            taken = np.asarray(evaluate(block, stmt.condition))
            found[id(stmt)] = np.broadcast_to(taken, (block.count,)).astype(bool)
    return found


def _only(expr: Expr, known: set[str]) -> bool:
    names = [var.name for var in variables(expr)]
    return bool(names) and all(name in known for name in names) and not any(loads(expr))
