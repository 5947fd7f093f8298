"""Calls that repeat: what a call checked and worked out is kept for the next one that looks the same.

Two calls look the same when their tensors agree in type, shape, strides and device, their addresses in
what conditions ask of them (A % 16), and their integers in value. Everything else of a call (sizes,
promises, the chosen launches, grids, the bytes of arguments) follows from that; addresses, floating-point
scalars and the stream are taken anew. A call that is not like an earlier one goes the long way, which
has the errors.
"""

from __future__ import annotations

import ast
import math
import re
import struct
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tile2c.runtime import dtypes, tensor_maps
from tile2c.runtime.expressions import evaluate
from tile2c.runtime.records import Argument, KernelRecord, Launch, LaunchArgument, MapRecord
from tile2c.runtime.streams import stream_handle, stream_source
from tile2c.runtime.tensors import HOST, allocator_like

if TYPE_CHECKING:
    from tile2c.runtime.backends.device import DeviceModule, DeviceSession, Driver, PreparedLaunch
    from tile2c.runtime.backends.protocol import LaunchCall
    from tile2c.runtime.binding import Bound

MOST = 256  # calls remembered by each thread for one kernel
MOST_MAPS = 64  # addresses for which a tensor map is kept

Reader = Callable[[Any], tuple[Hashable, int]]  # what tensors have in common, and the address
_FLOATS = {"float16": "<e", "float32": "<f", "tfloat32": "<f", "float64": "<d"}
_MODULUS = re.compile(r"\b(\w+) % (\d+)")


def _torch(value: Any) -> tuple[Hashable, int]:
    return (value.dtype, value.shape, value.stride(), value.device), value.data_ptr()


def _interface(value: Any) -> tuple[Hashable, int]:
    about = value.__cuda_array_interface__
    address, read_only = about["data"]
    strides = about.get("strides")
    own = getattr(getattr(value, "dtype", None), "name", None)
    device = getattr(getattr(value, "device", None), "id", 0)
    shape = tuple(about["shape"]), None if strides is None else tuple(strides)
    return (about["typestr"], shape, read_only, own, device), int(address or 0)


def _reader_of(value: object) -> Reader | None:
    """How tensors of a type are read; None for those that only the long way knows."""
    module = type(value).__module__.partition(".")[0]
    if module == "torch" and hasattr(value, "data_ptr"):
        return _torch
    if module != "numpy" and hasattr(value, "__cuda_array_interface__"):
        return _interface
    return None


def moduli(record: KernelRecord) -> dict[str, int] | None:
    """Of each tensor that conditions name, the number that its address is divided by.

    None where a condition asks something else of an address.
    """
    tensors = {argument.name for argument in record.arguments if argument.kind == "tensor"}
    found: dict[str, int] = {}
    conditions = [*record.requires, *(x.when for x in record.launches if x.when is not None)]
    for condition in map(str, conditions):
        for name, divisor in _MODULUS.findall(condition):
            if name in tensors and int(divisor):
                found[name] = math.lcm(found.get(name, 1), int(divisor))
        rest = _MODULUS.sub("0", condition)
        if any(n.id in tensors for n in ast.walk(ast.parse(rest)) if isinstance(n, ast.Name)):
            return None
    return found


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it was made: its launches, and each with what the manifest says of it."""

    bound: Bound
    session: DeviceSession
    module: DeviceModule
    launches: Sequence[tuple[Launch, LaunchCall]]
    names: Mapping[str, int]  # sizes and integers
    workspace: int | None  # its address, if the caller passed one


class Repeats:
    """The calls of one kernel that are remembered, for each thread its own."""

    def __init__(self, record: KernelRecord) -> None:
        self.record = record
        self._moduli = moduli(record)
        inputs = tuple(a for a in record.arguments if not a.is_out)
        self._layouts = {
            len(args): tuple(self._layout(argument) for argument in args)
            for args in (inputs, record.arguments)
        }
        self._own = threading.local()
        self._readers: dict[type, Reader | None] = {}

    def _layout(self, argument: Argument) -> tuple[bool, bool, int]:
        """Whether it is a tensor, whether an integer, and what its address is divided by."""
        tensor = argument.kind == "tensor"
        integer = not tensor and argument.dtype.startswith(("int", "uint", "bool"))
        return tensor, integer, (self._moduli or {}).get(argument.name, 1)

    def look(
        self, args: tuple[object, ...], workspace: object
    ) -> tuple[Hashable, list[int]] | None:
        """The call's key and the addresses of its tensors; None for one that is not remembered."""
        try:
            return self._look(args, workspace)
        except (AttributeError, KeyError, TypeError, ValueError):
            return None  # whatever is wrong with it, the long way says what

    def _look(
        self, args: tuple[object, ...], workspace: object
    ) -> tuple[Hashable, list[int]] | None:
        layout = self._layouts.get(len(args))
        if layout is None or self._moduli is None:
            return None
        readers, parts, addresses = self._readers, [], []
        for value, (tensor, integer, modulus) in zip(args, layout, strict=True):
            kind = type(value)
            if tensor:
                try:
                    read = readers[kind]
                except KeyError:
                    read = readers[kind] = _reader_of(value)
                if read is None:
                    return None
                about, address = read(value)
                addresses.append(address)
                parts.append(about)
                if modulus > 1:
                    parts.append(address % modulus)
            elif integer:
                if kind is not int and kind is not bool:
                    return None
                parts.append((kind, value))
            elif kind is not float and kind is not int:
                return None
        if workspace is not None:
            read = readers.setdefault(type(workspace), _reader_of(workspace))
            if read is None:
                return None
            about, address = read(workspace)
            parts += ["workspace", about, address % self.record.workspace_align]
            addresses.append(address)
        key = (len(args), *parts)
        hash(key)
        return key, addresses

    def find(self, key: Hashable) -> Repeat | None:
        """What an earlier call of this thread left under the key."""
        kept: dict[Hashable, Repeat] | None = getattr(self._own, "kept", None)
        return None if kept is None else kept.get(key)

    def keep(self, key: Hashable, call: Call) -> None:
        """Remembers a call that has succeeded, if all of it can be repeated."""
        if any(t.device == HOST for t in call.bound.tensors.values()):
            return
        needed = self.record.workspace_bytes
        if needed is not None and call.workspace is None and evaluate(needed, call.names):
            return
        made = _repeat(self.record, call)
        if made is None:
            return
        kept: dict[Hashable, Repeat] = self._own.__dict__.setdefault("kept", {})
        if len(kept) >= MOST:
            kept.clear()
        kept[key] = made


@dataclass(slots=True)
class _Map:
    """A tensor map argument; its bytes by the address that they describe."""

    record: MapRecord
    tensor: int
    names: Mapping[str, int]
    known: dict[int, bytes]

    def at(self, driver: Driver, address: int) -> bytes:
        found = self.known.get(address)
        if found is None:
            if len(self.known) >= MOST_MAPS:
                self.known.clear()
            resolved = tensor_maps.resolve(self.record, self.names, address)
            found = self.known[address] = driver.encode(resolved)
        return found


@dataclass(slots=True)
class _Address:
    """The address of one of the call's tensors, moved by `offset` bytes."""

    tensor: int
    offset: int


@dataclass(slots=True)
class _Scalar:
    """A floating-point argument, by its place among those passed."""

    place: int
    pack: Callable[[Any], bytes]


Part = _Address | _Scalar | _Map | bytes  # bytes: the same in every call


@dataclass(slots=True)
class Repeat:
    """A call that can be made again."""

    driver: Driver
    device: int
    source: Callable[[], int]  # the framework's current stream
    launches: list[tuple[PreparedLaunch, list[Part]]]
    fresh: list[tuple[Callable[[], object], Reader]]

    def run(self, args: tuple[object, ...], addresses: list[int], stream: object) -> Any:
        """Launches; returns the outputs that were not passed."""
        handle = self.source() if stream is None else stream_handle(stream, ())
        made: list[object] = []
        for make, read in self.fresh:
            value = make()
            made.append(value)
            addresses.append(read(value)[1])
        with self.driver.current(self.device):
            for launch, parts in self.launches:
                values: list[int | bytes] = []
                for part in parts:
                    if isinstance(part, _Address):
                        values.append(addresses[part.tensor] + part.offset)
                    elif isinstance(part, bytes):
                        values.append(part)
                    elif isinstance(part, _Scalar):
                        values.append(part.pack(args[part.place]))
                    else:
                        values.append(part.at(self.driver, addresses[part.tensor]))
                launch(handle, values)
        return made[0] if len(made) == 1 else tuple(made) or None


def _repeat(record: KernelRecord, call: Call) -> Repeat | None:
    """The call in a form that only asks for what may change; None where a driver cannot prepare."""
    bound = call.bound
    fresh = []
    like = next((t for n, t in bound.tensors.items() if n not in bound.fresh), None)
    for name in bound.fresh:
        tensor = bound.tensors[name]
        make = allocator_like(like, tensor.shape, record.argument(name).dtype)
        read = _reader_of(tensor.owner)
        if make is None or read is None:
            return None
        fresh.append((make, read))
    passed = [a.name for a in record.arguments if a.kind == "tensor" and a.name not in bound.fresh]
    given = [*passed, *(["\0workspace"] if call.workspace is not None else []), *bound.fresh]
    places = {name: place for place, name in enumerate(given)}
    scalars = [a.name for a in record.arguments if a.name not in bound.fresh]
    launches: list[tuple[PreparedLaunch, list[Part]]] = []
    for launch, made in call.launches:
        parts = []
        for item, value in zip(launch.arguments, made.arguments, strict=True):
            part = _part(record, call, item, value, places, scalars)
            if part is None:
                return None
            parts.append(part)
        prepared = call.session.prepared(call.module, made)
        if prepared is None:
            return None
        launches.append((prepared, parts))
    tensors = tuple(bound.tensors.values())
    source = stream_source(tensors)
    return Repeat(call.session.driver, call.session.device, source, launches, fresh)


def _part(
    record: KernelRecord,
    call: Call,
    item: LaunchArgument,
    value: Any,
    places: dict[str, int],
    passed: Sequence[str],
) -> Part | None:
    if item.kind == "tensor":
        return _Address(places[item.name], 0)
    if item.kind == "workspace":
        assert call.workspace is not None
        return _Address(places["\0workspace"], value.address - call.workspace)
    if item.map is not None:
        place = "\0workspace" if item.map.in_workspace else item.map.tensor
        return _Map(item.map, places[place], call.names, {})
    if item.kind == "scalar":
        dtype = item.dtype or record.argument(item.name).dtype
        if not dtype.startswith(("int", "uint", "bool")):
            return _Scalar(passed.index(item.name), _packer(dtype, item.name))
    data: bytes = value.data
    return data


def _packer(dtype: str, name: str) -> Callable[[Any], bytes]:
    """A float's bytes; what does not fit goes the way that rounds it to infinity."""
    form = _FLOATS.get(dtype)
    if form is None:
        return lambda value: dtypes.scalar_bytes(dtype, value, name)
    pack = struct.Struct(form).pack

    def packed(value: Any) -> bytes:
        try:
            return pack(value)
        except (OverflowError, struct.error):
            return dtypes.scalar_bytes(dtype, value, name)

    return packed
