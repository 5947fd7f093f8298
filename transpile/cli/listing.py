"""`--list` and `--targets`: what is in the files, what tile2c can write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tile2c.transpile.cli.report import Reporter, status_of
from tile2c.transpile.cli.status import Status
from tile2c.transpile.diagnostics import Diagnostics

if TYPE_CHECKING:
    from tile2c.transpile.pipeline import Request
    from tile2c.transpile.stage import KernelListing


def print_kernels(request: Request, reporter: Reporter) -> int:
    """Every kernel of the files, ready or not; in JSON one array on standard output."""
    from tile2c.transpile.cli.generate import names_checked
    from tile2c.transpile.pipeline import list_kernels

    diagnostics = Diagnostics()
    with names_checked():
        kernels = list_kernels(request, diagnostics)
    if reporter.format == "json":
        print(json.dumps([_as_json(kernel) for kernel in kernels], indent=2, default=str))
    else:
        for kernel in kernels:
            print(_as_text(kernel))
        if not kernels and not diagnostics.failed:
            print("no kernels found")
    reporter.show_all(diagnostics.items)
    return status_of(diagnostics)


def _as_json(kernel: KernelListing) -> dict[str, object]:
    return {
        "name": kernel.name,
        "file": kernel.file,
        "line": kernel.line,
        "style": kernel.style,
        "parameters": dict(kernel.parameters),
        "sizes": list(kernel.sizes),
        "ready": kernel.ready,
    }


def _as_text(kernel: KernelListing) -> str:
    lines = [f"{kernel.name}  {kernel.file}:{kernel.line}  ({kernel.style})"]
    parameters = ", ".join(
        name if value is None else f"{name} = {value}" for name, value in kernel.parameters.items()
    )
    if parameters:
        lines.append(f"    parameters  {parameters}")
    if kernel.sizes:
        lines.append(f"    sizes       {', '.join(kernel.sizes)}")
    if kernel.ready is not True:
        lines.append(f"    not ready   {kernel.ready}")
    return "\n".join(lines)


def print_targets(*, as_json: bool) -> int:
    """Every target with its summary and what of it is proven."""
    from tile2c.transpile.targets import all_targets
    from tile2c.transpile.targets.describe import supports

    targets = all_targets()
    if as_json:
        keys = (
            "name",
            "family",
            "arch",
            "suffix",
            "summary",
            "proven",
            "emulated",
            "compiled",
            "facts",
        )
        found = [
            {**{key: getattr(t, key) for key in keys}, "supports": list(supports(t))}
            for t in targets
        ]
        print(json.dumps(found, indent=2))
        return Status.DONE
    width = max(len(target.name) for target in targets)
    for target in targets:
        print(f"{target.name:{width}}  {target.suffix}  {target.summary}")
        tried = [target.proven]
        tried += [f"emulated: {target.emulated}"] if target.emulated else []
        tried += [f"compiled: {target.compiled}"] if target.compiled else []
        for line in (*supports(target), "; ".join(tried)):
            print(f"{'':{width}}  {line}")
    return Status.DONE
