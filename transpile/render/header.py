"""The comment at the head of every kernel file: what, from where, how to compile, launch and edit."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from tile2c.transpile.wording import listed

if TYPE_CHECKING:
    from tile2c.transpile.lower.plan import Plan
    from tile2c.transpile.targets import Target

_LAUNCH = "launch "
DIGEST = "............"  # filled in when the text is complete


def needs(plan: Plan) -> str:
    """What every call has to meet, in words: aligned addresses, promises on sizes."""
    return conditions_in_words(plan.requires, {arg.name for arg in plan.args})


def conditions_in_words(conditions: Iterable[str], tensors: Collection[str]) -> str:
    """`A and B at multiples of 16 bytes, K % 8 == 0`, of `A % 16 == 0` and the like."""
    aligned: dict[str, list[str]] = {}
    rest = []
    for condition in conditions:
        name, _, tail = condition.partition(" % ")
        if name in tensors and tail.endswith(" == 0"):
            aligned.setdefault(tail.removesuffix(" == 0"), []).append(name)
        else:
            rest.append(condition)
    words = [f"{listed(names)} at multiples of {size} bytes" for size, names in aligned.items()]
    return ", ".join([*words, *rest])


def head_lines(plan: Plan, target: Target, source_name: str, again: str) -> list[str]:
    """The lines under the title; paths, dates and line numbers stay out of them."""
    from tile2c import __version__

    file = f"{plan.name}{target.suffix}"
    lines = [
        f"from     {source_name} by tile2c {__version__}",
        f"target   {target.name} ({target.proven})",
        f"again    {again}",
        f"compile  {target.compile.format(file=file, stem=plan.name)}",
        f"launch   {plan.launch_note}",
    ]
    lines += [note for note in plan.notes if note.startswith(_LAUNCH)]
    if plan.size_note:
        lines.append(f"sizes    {plan.size_note}")
    if plan.requires:
        lines.append(f"needs    {needs(plan)}")
    lines += [note for note in plan.notes if not note.startswith(_LAUNCH)]
    lines.append(f"text     sha256 {DIGEST}  (edit freely: `tile2c --merge` keeps your changes)")
    return lines
