"""What changed between two generations of the same kernels, in words and as a short diff."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from tile2c.transpile.output import header
from tile2c.transpile.output.differences import short_diff
from tile2c.transpile.output.generated import GeneratedKernel, JsonValue
from tile2c.transpile.record import record

REST = "; --full shows them"


@record(kw_only=True)
class Change:
    """One kernel for one target: `facts` are named differences, `diff` those of the text."""

    name: str
    target: str
    kind: Literal["new", "gone", "changed", "same"]
    facts: tuple[tuple[str, str], ...] = ()
    diff: tuple[str, ...] = ()


def compare(
    old: Sequence[GeneratedKernel], new: Sequence[GeneratedKernel], *, shown: int | None
) -> tuple[Change, ...]:
    """Every kernel of either side; first those of `new`, in its order. `shown` limits the diffs."""
    before = {(kernel.name, kernel.target): kernel for kernel in old}
    after = {(kernel.name, kernel.target): kernel for kernel in new}
    found = []
    for key, kernel in after.items():
        if key in before:
            found.append(_changed(before[key], kernel, shown))
        else:
            found.append(Change(name=key[0], target=key[1], kind="new", facts=_described(kernel)))
    gone = [key for key in before if key not in after]
    return (*found, *(Change(name=name, target=target, kind="gone") for name, target in gone))


def _changed(old: GeneratedKernel, new: GeneratedKernel, shown: int | None) -> Change:
    facts = tuple(_facts(old, new))
    file = f"{new.name}{new.suffix}"
    text = header.headed(new.text, old.text)  # a header says again what the facts say
    diff = short_diff(
        header.normalized(old.text), text, f"{file} old", f"{file} new", shown=shown, rest=REST
    )
    kind: Literal["changed", "same"] = "changed" if facts or diff else "same"
    return Change(name=new.name, target=new.target, kind=kind, facts=facts, diff=diff)


def _described(kernel: GeneratedKernel) -> tuple[tuple[str, str], ...]:
    arguments = ", ".join(_argument(arg) for arg in _listed(kernel.manifest, "args"))
    launches = [_launch(launch) for launch in _by_entry(kernel).values()]
    facts = [("arguments", arguments), *(("launch", launch) for launch in launches)]
    return (*facts, *((name, value) for name, value in _taken(kernel)))


def _facts(old: GeneratedKernel, new: GeneratedKernel) -> Iterator[tuple[str, str]]:
    yield from _values("parameter", _mapping(old, "parameters"), _mapping(new, "parameters"))
    for what, key, spell in (
        ("size", "sizes", str), ("argument", "args", _argument), ("needs", "requires", str)
    ):  # fmt: skip
        yield from _items(what, *([spell(item) for item in _listed(side.manifest, key)]
                                  for side in (old, new)))  # fmt: skip
    yield from _launches(old, new)
    was, now = old.manifest.get("workspace"), new.manifest.get("workspace")
    if was != now:
        yield "workspace", f"{_plain(was)} -> {_plain(now)}"
    for (name, before), (_, after) in zip(_taken(old), _taken(new), strict=False):
        if before != after:
            yield name, f"{before} -> {after}"


def _taken(kernel: GeneratedKernel) -> list[tuple[str, str]]:
    taken = kernel.resources
    if taken is None:
        return []
    if taken.registers is None:
        return [("local memory", f"{taken.local_bytes} bytes")]
    return [
        ("shared memory", f"{taken.local_bytes} bytes"),
        ("registers", f"{taken.registers} a thread for arrays, estimated"),
    ]


def _values(
    what: str, old: dict[str, JsonValue], new: dict[str, JsonValue]
) -> Iterator[tuple[str, str]]:
    for name in {**old, **new}:
        if name not in new:
            yield what, f"{name} = {_plain(old[name])} is gone"
        elif name not in old:
            yield what, f"{name} = {_plain(new[name])} is new"
        elif old[name] != new[name]:
            yield what, f"{name} = {_plain(old[name])} -> {_plain(new[name])}"


def _items(what: str, old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    """Items that are gone, then new ones; the order alone is a change too."""
    if sorted(old) == sorted(new):
        if old != new:
            yield what, f"in another order: {', '.join(new)}"
        return
    yield from ((what, f"- {item}") for item in old if item not in new)
    yield from ((what, f"+ {item}") for item in new if item not in old)


def _launches(old: GeneratedKernel, new: GeneratedKernel) -> Iterator[tuple[str, str]]:
    """Launches that are gone or new; of one that stays, what is different."""
    before, after = _by_entry(old), _by_entry(new)
    for entry in {**before, **after}:
        if entry not in after:
            yield "launch", f"- {_launch(before[entry])}"
        elif entry not in before:
            yield "launch", f"+ {_launch(after[entry])}"
        else:
            for key, spell in _LAUNCH.items():
                was, now = spell(before[entry].get(key)), spell(after[entry].get(key))
                if was != now:
                    yield "launch", f"{entry}: {key} {was} -> {now}"


def _by_entry(kernel: GeneratedKernel) -> dict[str, dict[str, JsonValue]]:
    found = _listed(kernel.manifest, "launch")
    return {str(item.get("entry")): item for item in found if isinstance(item, dict)}


def _listed(manifest: dict[str, JsonValue], key: str) -> list[JsonValue]:
    value = manifest.get(key)
    return value if isinstance(value, list) else []


def _mapping(kernel: GeneratedKernel, key: str) -> dict[str, JsonValue]:
    value = kernel.manifest.get(key)
    return value if isinstance(value, dict) else {}


def _argument(item: JsonValue) -> str:
    """`C: float16 [M, N], out`; a scalar without its shape."""
    if not isinstance(item, dict):
        return str(item)
    shape = item.get("shape")
    dims = f" [{', '.join(map(str, shape))}]" if isinstance(shape, list) else ""
    role = f", {item['role']}" if "role" in item else ""
    return f"{item.get('name')}: {item.get('dtype')}{dims}{role}"


def _launch(item: dict[str, JsonValue]) -> str:
    words = [str(item.get("entry"))]
    words += [f"{key} {spell(item[key])}" for key, spell in _LAUNCH.items() if item.get(key)]
    return ", ".join(words)


def _extents(value: JsonValue) -> str:
    return f"({', '.join(map(str, value))})" if isinstance(value, list) else "none"


def _condition(value: JsonValue) -> str:
    return "always" if value is None else str(value)


_LAUNCH: dict[str, Callable[[JsonValue], str]] = {
    "grid": _extents,
    "tiles": _extents,
    "block": _extents,
    "cluster": _extents,
    "shared_bytes": str,
    "when": _condition,
}


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
