"""One kernel, ready to be called: arguments in, launches out, results back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any, cast

from tile2c.runtime import dtypes, tensor_maps
from tile2c.runtime.backends.device import DeviceModule, DeviceSession
from tile2c.runtime.backends.protocol import (
    Backend,
    LaunchCall,
    Module,
    Pointer,
    Session,
    Value,
)
from tile2c.runtime.binding import Bound, bind
from tile2c.runtime.expressions import evaluate, names_of
from tile2c.runtime.grid import SMS, asks_device, grid_of
from tile2c.runtime.records import Expression, KernelRecord, Launch, LaunchArgument
from tile2c.runtime.repeat import Call, Repeats
from tile2c.runtime.tensors import TensorView, view

WARM_UP = 3

_ALIGNED = re.compile(r"(\w+) % (\d+) == 0")


class Kernel:
    """A kernel of OUT on one backend. Calling it launches it; it never synchronizes a device.

    Tensors and scalars go in the author's order, with or without the outputs, or by keyword; sizes
    are found from the shapes. Outputs that are not passed are allocated and returned.
    """

    def __init__(
        self, record: KernelRecord, folder: Path, backend: Backend, *, may_compile: bool = True
    ) -> None:
        self.record = record
        self.backend = backend
        self._folder = folder
        self._may_compile = may_compile
        self._module: Module | None = None
        self._preparing = Lock()
        self._repeats = Repeats(record)
        self._asks_device = asks_device(record)

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def target(self) -> str:
        return self.record.target

    @property
    def path(self) -> Path:
        """The kernel's file."""
        return self._folder / self.record.file

    def __repr__(self) -> str:
        arguments = ", ".join(argument.signature for argument in self.record.arguments)
        return f"<kernel {self.name}({arguments}) for {self.target} on {self.backend.name}>"

    def prepare(self) -> Module:
        """Loads the kernel's file, compiling it if needed; a later call need not do it."""
        if self._module is None:
            with self._preparing:
                if self._module is None:  # no other thread has done it since
                    self._module = self.backend.module(
                        self.record, self._folder, may_compile=self._may_compile
                    )
        return self._module

    def __call__(
        self, *args: object, stream: object = None, workspace: object = None, **keywords: object
    ) -> Any:
        """Runs the kernel; returns the outputs that were not passed, one or a tuple of them."""
        seen = None if keywords else self._repeats.look(args, workspace)
        repeat = None if seen is None else self._repeats.find(seen[0])
        if seen is not None and repeat is not None:
            return repeat.run(args, seen[1], stream)
        bound = bind(self.record, args, keywords)
        module = self.prepare()
        with self._session(bound, stream) as session:
            launched = []
            for launch, call in self._calls(bound, session, workspace):
                session.launch(module, call)
                launched.append((launch, call))
            session.finish()
            if seen is not None and isinstance(session, DeviceSession):
                passed = None if workspace is None else seen[1][-1]
                names = {**bound.sizes, **self._integers(bound)}
                made_call = Call(
                    bound, session, cast(DeviceModule, module), launched, names, passed
                )
                self._repeats.keep(seen[0], made_call)
        made = tuple(bound.tensors[name].owner for name in bound.fresh)
        return made[0] if len(made) == 1 else made or None

    def time(
        self,
        *args: object,
        repeat: int = 100,
        stream: object = None,
        workspace: object = None,
        **keywords: object,
    ) -> list[float]:
        """Runs the kernel `repeat` times after a warm-up; milliseconds of each run."""
        if repeat < 1:
            raise ValueError(f"repeat is {repeat}: a kernel is timed over at least one run")
        bound = bind(self.record, args, keywords)
        module = self.prepare()
        with self._session(bound, stream) as session:
            calls = [call for _, call in self._calls(bound, session, workspace)]

            def once() -> None:
                for call in calls:
                    session.launch(module, call)

            for _ in range(min(WARM_UP, repeat)):
                once()
            found = [session.time(once) for _ in range(repeat)]
            session.finish()
        return found

    def workspace_bytes(self, *args: object, **keywords: object) -> int:
        """How large a workspace the call with these arguments takes; 0 where it takes none."""
        bound = bind(self.record, args, keywords)
        needed = self.record.workspace_bytes
        return 0 if needed is None else evaluate(needed, {**bound.sizes, **self._integers(bound)})

    def entries(self, *args: object, **keywords: object) -> tuple[str, ...]:
        """The entry points that a call with these arguments launches, in order; launches nothing."""
        bound = bind(self.record, args, keywords)
        with self._session(bound, None) as session:
            return tuple(call.entry for _, call in self._calls(bound, session, None))

    @contextmanager
    def _session(self, bound: Bound, stream: object) -> Iterator[Session]:
        """A session for one call; what closing it says does not hide why the call failed."""
        session = self.backend.session(tuple(bound.tensors.values()), stream)
        try:
            yield session
        except BaseException:
            with suppress(Exception):
                session.close()
            raise
        session.close()

    def _calls(
        self, bound: Bound, session: Session, workspace: object
    ) -> Iterator[tuple[Launch, LaunchCall]]:
        """The launches of one call: of each group the first whose condition holds."""
        pointers = {
            name: self._placed(name, tensor, name in bound.fresh, session)
            for name, tensor in bound.tensors.items()
        }
        names = {**bound.sizes, **self._integers(bound)}
        device = {SMS: session.multiprocessors()} if self._asks_device else {}
        addresses = {name: pointer.address for name, pointer in pointers.items()}
        conditions = {**names, **device, **addresses}
        for condition in self.record.requires:
            if not evaluate(condition, conditions):
                raise ValueError(_broken(self.name, condition, conditions, pointers))
        scratch = self._workspace(names, session, workspace)
        for _, group in groupby(self.record.launches, key=lambda launch: launch.group):
            chosen = next((item for item in group if _holds(item, conditions)), None)
            if chosen is None:
                continue
            grid = grid_of(self.name, self.record.family, chosen, {**names, **device})
            if 0 in grid:  # nothing to do; a device refuses an empty grid
                continue
            arguments = (
                self._argument(item, bound, pointers, names, scratch, session)
                for item in chosen.arguments
            )
            yield (
                chosen,
                LaunchCall(
                    entry=chosen.entry,
                    grid=grid,
                    block=_triple(chosen.block, names),
                    shared_bytes=evaluate(chosen.shared_bytes, names),
                    cluster=None if chosen.cluster is None else _triple(chosen.cluster, names),
                    arguments=tuple(arguments),
                ),
            )

    def _placed(self, name: str, tensor: TensorView, fresh: bool, session: Session) -> Pointer:
        argument = self.record.argument(name)
        address = session.place(name, tensor, reads=not fresh, writes=argument.written)
        return Pointer(name, address, tensor.nbytes, argument.written, tensor.owner)

    def _integers(self, bound: Bound) -> dict[str, int]:
        """Integer scalars may occur in grids and conditions like sizes."""
        return {
            argument.name: int(bound.scalars[argument.name])  # type: ignore[call-overload]
            for argument in self.record.arguments
            if argument.name in bound.scalars and argument.dtype.startswith(("int", "uint", "bool"))
        }

    def _workspace(
        self, names: Mapping[str, int], session: Session, passed: object
    ) -> Pointer | None:
        record = self.record
        if record.workspace_bytes is None:
            return None
        needed = evaluate(record.workspace_bytes, names)
        if not needed:
            return None
        if passed is None:
            return session.scratch(needed, record.workspace_align)
        found = view(passed, "workspace")
        if found.nbytes < needed:
            raise ValueError(f"workspace has {found.nbytes} bytes, {self.name} needs {needed}")
        address = session.place("workspace", found, reads=False, writes=True)
        if address % record.workspace_align:
            raise ValueError(f"workspace is not aligned to {record.workspace_align} bytes")
        return Pointer("workspace", address, found.nbytes, True, passed)

    def _argument(
        self,
        item: LaunchArgument,
        bound: Bound,
        pointers: Mapping[str, Pointer],
        names: Mapping[str, int],
        scratch: Pointer | None,
        session: Session,
    ) -> Pointer | Value:
        if item.kind == "tensor":
            return pointers[item.name]
        if item.kind == "size":
            number = evaluate(item.name if item.value is None else item.value, names)
            return _value(item.dtype or "int32", number, item.name)
        if item.kind == "scalar":
            dtype = item.dtype or self.record.argument(item.name).dtype
            return _value(dtype, bound.scalars[item.name], item.name)
        if item.kind == "workspace":
            if scratch is None:
                raise ValueError(f"{self.record.file}: a launch takes a workspace of unknown size")
            return _inside(scratch, evaluate(item.value or 0, names))
        if item.map is None:
            raise ValueError(f"{self.record.file}: {item.kind} is not a kind of argument")
        pointer = pointers[item.map.tensor]
        if item.map.in_workspace:
            if scratch is None:
                raise ValueError(f"{self.record.file}: a map of a workspace of unknown size")
            pointer = scratch
        resolved = tensor_maps.resolve(item.map, names, pointer.address)
        return Value(session.encode(resolved), tensor_maps.ALIGN, pointer)


def _value(dtype: str, value: object, name: str) -> Value:
    data = dtypes.scalar_bytes(dtype, value, name)
    return Value(data, len(data))


def _inside(scratch: Pointer, offset: int) -> Pointer:
    return Pointer(
        scratch.name, scratch.address + offset, scratch.nbytes - offset, True, scratch.owner
    )


def _holds(launch: Launch, names: Mapping[str, int]) -> bool:
    return launch.when is None or bool(evaluate(launch.when, names))


def _triple(extents: Sequence[Expression], names: Mapping[str, int]) -> tuple[int, int, int]:
    x, y, z = (evaluate(extent, names) for extent in extents)
    return x, y, z


def _broken(
    kernel: str, condition: str, names: Mapping[str, int], pointers: Mapping[str, Pointer]
) -> str:
    """What a condition that every call needs asks of the caller."""
    aligned = _ALIGNED.fullmatch(condition.strip())
    if aligned is not None and aligned[1] in pointers:
        return f"{aligned[1]} must start at a multiple of {aligned[2]} bytes for {kernel}"
    values = [f"{name} = {names[name]}" for name in sorted(names_of(condition)) if name in names]
    return f"{kernel} needs {condition}, but {', '.join(values)}"
