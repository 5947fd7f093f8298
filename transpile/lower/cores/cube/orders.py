"""Orders what the cube core does to one tensor: stores of FIX among themselves, and with loads of MTE2.

reads   steps        writes  steps with `Order` and `Barrier` steps, with reasons
why     queues carry the order of tiles, but of tensors nobody does
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.lower.cores.accesses import variables_of
from tile2c.transpile.lower.cores.plan import (
    Barrier,
    Branch,
    CubeCall,
    Local,
    Loop,
    Order,
    Step,
    TensorRef,
    WhileLoop,
    bodies,
)


def order_tensors(body: tuple[Step, ...], exchanged: frozenset[str]) -> tuple[Step, ...]:
    """The body of the block loop, ordered. Flags between cores order the tensors `exchanged`."""
    return _Orders(body, exchanged).ordered(body)


class _Orders:
    def __init__(self, body: tuple[Step, ...], exchanged: frozenset[str]) -> None:
        self.loaded: set[str] = set()
        self.stored: set[str] = set()
        self.again: set[str] = set()  # stored where they may have been stored before
        self.named: dict[str, set[str]] = {}  # local -> variables of its value
        self.visit(body, frozenset())
        for found in (self.loaded, self.stored, self.again):
            found -= exchanged

    def visit(self, steps: tuple[Step, ...], around: frozenset[str]) -> None:
        for step in steps:
            if isinstance(step, Local):
                self.named[step.name] = self.names(step.value)
            if isinstance(step, CubeCall):
                self.call(step, around)
            inner = around | {step.var.name} if isinstance(step, Loop) else around
            for part in bodies(step):
                self.visit(part, inner)

    def call(self, step: CubeCall, around: frozenset[str]) -> None:
        for part in step.arguments:
            if isinstance(part, TensorRef):
                self.loaded.add(part.handle)
        if isinstance(step.dst, TensorRef):
            handle = step.dst.handle
            if handle in self.stored or not around <= self.names(step.dst.offset):
                self.again.add(handle)
            self.stored.add(handle)

    def names(self, value: object) -> set[str]:
        """Variables of an expression; for a local those of its value."""
        found: set[str] = set()
        for var in variables_of(value):
            found |= self.named.get(var.name, {var.name})
        return found

    def ordered(self, body: tuple[Step, ...]) -> tuple[Step, ...]:
        new: list[Step] = []
        for step in body:
            if isinstance(step, Loop | WhileLoop):
                step = replace(step, body=self.ordered(step.body))
            elif isinstance(step, Branch):
                step = replace(step, then=self.ordered(step.then), orelse=self.ordered(step.orelse))
            elif isinstance(step, CubeCall):
                added = self.before(step)
                if added and step.comments:  # the author's statement stands above
                    added[0] = replace(added[0], comments=step.comments)
                    step = replace(step, comments=())
                new += added
            new.append(step)
        return tuple(new)

    def before(self, step: CubeCall) -> list[Step]:
        found: list[Step] = []
        for part in step.arguments:
            if isinstance(part, TensorRef) and part.handle in self.loaded & self.stored:
                why = f"{part.handle} has been written"
                found.append(Order(before="FIX", after="MTE2", remark=why, span=step.span))
        if isinstance(step.dst, TensorRef):
            handle = step.dst.handle
            if handle in self.loaded & self.stored:
                why = f"{handle} has been read"
                found.append(Order(before="MTE2", after="FIX", remark=why, span=step.span))
            if handle in self.again:
                why = f"what {handle} got before is there"
                found.append(Barrier(unit="FIX", remark=why, span=step.span))
        return found
