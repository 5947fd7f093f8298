"""What authors schedule by hand: which launches do, and what of it is only a hint for others.

reads   tile IR      writes  tile IR
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Call, Expr, Load, Var, const
from tile2c.transpile.ir.forms import (
    AuthorSync,
    BarrierArrive,
    BarrierWait,
    BulkCopy,
    ElementCopy,
    For,
    Function,
    Gemm,
    Hold,
    If,
    Launch,
    Order,
    Pipelined,
    SetRegisters,
    Stmt,
    Store,
    While,
)
from tile2c.transpile.ir.walk import parts, statements

if TYPE_CHECKING:
    from tile2c.transpile.targets import Target

_HINTS = (Order, SetRegisters, Hold)  # outside a schedule of the author's own


def by_hand(launch: Launch) -> bool:
    """Whether the author says himself who does what when."""
    if launch.barriers or launch.cluster != (1, 1, 1) or keeps_order(launch):
        return True
    return any(
        isinstance(stmt, BulkCopy)
        or (isinstance(stmt, Gemm) and stmt.asynchronous)
        or (isinstance(stmt, If) and _of_roles(stmt) and _multiplies(stmt))
        for stmt in statements(launch.body)
    )


def keeps_order(launch: Launch) -> bool:
    """Whether the author lets some threads wait for others by named barriers, in an order of his own."""
    return bool(named_barriers(launch))


def named_barriers(launch: Launch) -> frozenset[int]:
    """Numbers of the named barriers that the author uses."""
    return frozenset(
        stmt.barrier
        for stmt in statements(launch.body)
        if isinstance(stmt, AuthorSync) and stmt.barrier is not None
    )


def _of_roles(stmt: If) -> bool:
    """Whether the condition is that of `with T.ws(...)`."""
    return any(
        isinstance(x, Call) and x.function == "warpgroup_index" for x in parts(stmt.condition)
    )


def _multiplies(stmt: If) -> bool:
    return any(isinstance(x, Gemm) for x in statements((*stmt.then, *stmt.orelse)))


def settle(function: Function, target: Target) -> Function:
    """The function for this target: hints that mean nothing for it are left out.

    Raises InputError for the first thing that it does not have.
    """
    threads = target.planner == "simt"
    hopper = bool(getattr(target, "warpgroup_matrix", False))  # TMA, mbarriers, wgmma, clusters
    launches = []
    for launch in function.launches:
        if not hopper:
            _refuse(launch, target.name, threads)
        kept = hopper and by_hand(launch)
        body = _without_shares(launch.body) if kept else _without_hints(launch.body)
        launches.append(replace(launch, body=body))
    return replace(function, launches=tuple(launches))


def _refuse(launch: Launch, target: str, threads: bool) -> None:
    for what, stmt in _needs(launch):
        raise failure(
            "T2C590",
            f"{what}, which {target} does not have",
            stmt.span,
            help="--target cuda:sm_90a, or T.Pipelined and T.copy, which every target schedules itself",
        )
    if threads:
        return
    for stmt in statements(launch.body):
        roles = isinstance(stmt, If) and _of_roles(stmt)
        if roles or (isinstance(stmt, AuthorSync) and stmt.barrier is not None):
            what = "T.ws needs" if roles else "named barriers need"
            raise failure("T2C590", f"{what} threads, which {target} does not have", stmt.span)


def _needs(launch: Launch) -> Iterator[tuple[str, Stmt]]:
    for stmt in statements(launch.body):
        match stmt:
            case BulkCopy():
                yield "T.tma_copy needs tensor maps and mbarriers", stmt
            case BarrierArrive() | BarrierWait():
                yield f"{stmt.barrier.name} is an mbarrier", stmt
            case Order() if stmt.kind in ("stores_commit", "stores_wait"):
                yield "T.tma_store_wait and T.tma_store_arrive need tensor maps", stmt
            case Order() if stmt.kind in ("cluster_arrive", "cluster_wait"):
                yield "T.cluster_sync needs clusters of blocks", stmt
    if launch.cluster != (1, 1, 1):
        yield "cluster_dims needs clusters of blocks", Stmt(span=launch.span)


def _without_shares(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements less registers that are dealt out to all threads alike: none gives any up."""
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, SetRegisters):
            continue
        if isinstance(stmt, For | Pipelined | While):
            stmt = replace(stmt, body=_without_shares(stmt.body))
        elif isinstance(stmt, If) and not any(
            isinstance(x, Var) and x.kind == "thread" for x in parts(stmt.condition)
        ):
            then, orelse = _without_shares(stmt.then), _without_shares(stmt.orelse)
            stmt = replace(stmt, then=then, orelse=orelse)
        found.append(stmt)
    return tuple(found)


def _without_hints(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, _HINTS):
            continue
        if isinstance(stmt, For | Pipelined | While):
            stmt = replace(stmt, body=_without_hints(stmt.body))
        elif isinstance(stmt, If):
            then, orelse = _without_hints(stmt.then), _without_hints(stmt.orelse)
            if not then and not orelse and (stmt.then or stmt.orelse):
                continue
            stmt = replace(stmt, then=then, orelse=orelse)
        elif isinstance(stmt, ElementCopy):
            stmt = _element_by_element(stmt)
        elif isinstance(stmt, Gemm) and stmt.asynchronous:
            stmt = replace(stmt, asynchronous=False)
        found.append(stmt)
    return tuple(found)


def _element_by_element(copy: ElementCopy) -> For:
    """The copy as a loop of the thread, done when it is over."""
    var = Var(dtype=INT32, name=f"{copy.dst.name}_at", kind="loop")

    def moved(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        last = index[-1]
        return (*index[:-1], Binary(dtype=last.dtype, op="+", a=last, b=var))

    value = Load(dtype=copy.src.dtype, buffer=copy.src, index=moved(copy.source), span=copy.span)
    store = Store(buffer=copy.dst, index=moved(copy.target), value=value, span=copy.span)
    return For(
        kind="vectorized", var=var, start=const(0), stop=const(copy.count), body=(store,),
        span=copy.span, quote=copy.quote, comments=copy.comments, remark=copy.remark,
    )  # fmt: skip
