"""The comment at the head of every kernel file: what, from where, how to compile, launch and edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile2c.transpile.lower.plan import Plan
    from tile2c.transpile.targets import Target

DIGEST = "............"  # filled in when the text is complete


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
    if plan.size_note:
        lines.append(f"sizes    {plan.size_note}")
    lines += plan.notes
    lines.append(f"text     sha256 {DIGEST}  (edit freely: `tile2c --merge` keeps your changes)")
    return lines
