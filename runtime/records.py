"""The manifest as the runtime reads it: kernels, their arguments, their launches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Expression = str | int


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter of the kernel as its author wrote it."""

    name: str
    kind: Literal["tensor", "scalar"]
    dtype: str
    shape: tuple[Expression, ...] = ()
    role: Literal["in", "out", "inout"] = "in"
    strides: tuple[Expression, ...] | None = None  # in elements; None means rows without gaps

    @property
    def is_out(self) -> bool:
        return self.kind == "tensor" and self.role == "out"

    @property
    def written(self) -> bool:
        return self.kind == "tensor" and self.role != "in"

    @property
    def signature(self) -> str:
        """`A[M, K]`, for messages."""
        dims = ", ".join(str(dim) for dim in self.shape)
        return f"{self.name}[{dims}]" if self.kind == "tensor" else self.name


@dataclass(frozen=True, slots=True)
class MapRecord:
    """Everything needed to encode a tensor map; dimensions are listed innermost first."""

    name: str
    tensor: str
    dtype: str
    dims: tuple[Expression, ...]
    strides: tuple[Expression, ...]  # bytes, of dimensions 1 and up
    box: tuple[Expression, ...]
    element_strides: tuple[Expression, ...]
    swizzle: str = "none"
    l2: str = "none"
    fill: str = "zeros"
    offset: Expression = 0  # bytes from the tensor's start
    corners: tuple[tuple[int, ...], tuple[int, ...]] | None = None  # of im2col: lower, upper
    in_workspace: bool = False  # it describes a copy of the tensor there, from `offset` on


@dataclass(frozen=True, slots=True)
class LaunchArgument:
    """One parameter of an entry point."""

    kind: Literal["tensor", "size", "scalar", "workspace", "tensor_map"]
    name: str
    dtype: str | None = None
    value: Expression | None = None  # of a size that is computed; bytes into a workspace
    map: MapRecord | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch; of a group, the first whose condition holds is run."""

    group: int
    when: Expression | None
    entry: str
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    shared_bytes: Expression
    cluster: tuple[Expression, ...] | None
    arguments: tuple[LaunchArgument, ...]
    tiles: tuple[Expression, ...] = ()  # of a grid that the blocks share: each takes tiles in turn


@dataclass(frozen=True, slots=True)
class CompiledModule:
    """A module beside the text, compiled for one architecture."""

    arch: str
    file: str
    sha256: str
    text_sha256: str | None


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One entry of the manifest."""

    name: str
    target: str
    file: str
    source: str
    parameters: Mapping[str, Any]
    defines: tuple[str, ...]
    sizes: tuple[str, ...]
    arguments: tuple[Argument, ...]
    launches: tuple[Launch, ...]
    workspace_bytes: Expression | None
    workspace_align: int
    # Launches that take it may be left out, with the groups that hold no others.
    workspace_optional: bool
    modules: tuple[CompiledModule, ...]
    requires: tuple[str, ...] = ()  # what must hold of sizes and addresses for any launch

    @property
    def family(self) -> str:
        return self.target.partition(":")[0]

    @property
    def arch(self) -> str:
        return self.target.partition(":")[2]

    def argument(self, name: str) -> Argument:
        """The parameter of that name."""
        return next(argument for argument in self.arguments if argument.name == name)


def read_records(folder: Path) -> tuple[KernelRecord, ...]:
    """Every kernel of OUT. Raises FileNotFoundError, or ValueError for a broken manifest."""
    path = folder / "tile2c.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: {folder} is not an output folder of tile2c")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or not isinstance(data.get("kernels"), list):
            raise ValueError('it has no list "kernels"')
        if data.get("version") != 1:
            raise ValueError(f"version {data.get('version')!r} is not known")
        for entry in data["kernels"]:
            if not isinstance(entry, dict):
                raise ValueError("an entry is no object")
            _check_inside(str(entry.get("file")))
        return tuple(record_of(entry) for entry in data["kernels"])
    except RecursionError as error:
        raise ValueError(f"{path} cannot be read: it nests too deeply") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path} cannot be read: {reason}") from error


def _check_inside(file: str) -> None:
    """Nothing outside the folder is ever compiled or loaded."""
    if Path(file).is_absolute() or ".." in Path(file).parts:
        raise ValueError(f"the file {file} is not in the folder")


def record_of(entry: Mapping[str, Any]) -> KernelRecord:
    """One entry of the manifest; raises KeyError or TypeError where something is missing."""
    workspace = entry.get("workspace") or {}
    return KernelRecord(
        name=entry["name"],
        target=entry["target"],
        file=entry["file"],
        source=(entry.get("source") or {}).get("file", ""),
        parameters=entry.get("parameters") or {},
        defines=tuple(entry.get("defines") or ()),
        sizes=tuple(entry.get("sizes") or ()),
        arguments=tuple(_argument(item) for item in entry["args"]),
        launches=tuple(_launch(item) for item in entry["launch"]),
        workspace_bytes=workspace.get("bytes"),
        workspace_align=workspace.get("align", 256),
        workspace_optional=bool(workspace.get("optional")),
        modules=tuple(
            CompiledModule(m["arch"], m["file"], m["sha256"], m.get("text_sha256"))
            for m in entry.get("modules") or ()
        ),
        requires=tuple(entry.get("requires") or ()),
    )


def _argument(item: Mapping[str, Any]) -> Argument:
    strides = item.get("strides")
    return Argument(
        name=item["name"],
        kind=item["kind"],
        dtype=item["dtype"],
        shape=tuple(item.get("shape") or ()),
        role=item.get("role", "in"),
        strides=None if strides is None else tuple(strides),
    )


def _launch(item: Mapping[str, Any]) -> Launch:
    return Launch(
        group=item.get("group", 0),
        when=item.get("when"),
        entry=item["entry"],
        grid=_three(item["grid"]),
        block=_three(item["block"]),
        shared_bytes=item.get("shared_bytes") or 0,
        cluster=_three(item["cluster"]) if item.get("cluster") else None,
        arguments=tuple(_launch_argument(argument) for argument in item["args"]),
        tiles=_three(item["tiles"]) if item.get("tiles") else (),
    )


def _three(values: Sequence[Expression]) -> tuple[Expression, ...]:
    return (*values, 1, 1)[:3]


def _corners(item: Mapping[str, Any] | None) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    return (tuple(item["lower"]), tuple(item["upper"])) if item else None


def _launch_argument(item: Mapping[str, Any]) -> LaunchArgument:
    kind = item["kind"]
    found = LaunchArgument(kind, item.get("name", kind), item.get("dtype"), item.get("value"))
    if kind != "tensor_map":
        return found
    dims = tuple(item["dims"])
    return LaunchArgument(
        kind,
        found.name,
        map=MapRecord(
            name=found.name,
            tensor=item["tensor"],
            dtype=item["dtype"],
            dims=dims,
            strides=tuple(item["strides"]),
            box=tuple(item["box"]),
            element_strides=tuple(item.get("element_strides") or (1,) * len(dims)),
            swizzle=item.get("swizzle") or "none",
            l2=item.get("l2") or "none",
            fill=item.get("fill") or "zeros",
            offset=item.get("offset") or 0,
            corners=_corners(item.get("im2col")),
            in_workspace=bool(item.get("workspace")),
        ),
    )
