"""What one run may replace in OUT, and how it treats what it finds there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from tile2c.transpile.output.generated import GeneratedKernel
from tile2c.transpile.record import record

# Tells what is wrong with the merged text of a kernel, or None if it compiles or nothing can tell.
Verify = Callable[[GeneratedKernel, str, str], str | None]


@record(kw_only=True)
class Scope:
    """One run: its sources by their names in the manifest, its targets and `-D` values.

    `unready` names kernels that are in the sources but lack a `-D`; it is asked only when an entry
    of these sources was not generated. With `only` (`--kernel`) other kernels are not looked at.
    """

    tile2c: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    defines: tuple[str, ...] = ()
    only: bool = False
    whole: bool = False  # the run makes all that OUT holds: what it does not make is left over
    unready: Callable[[], frozenset[str]] = frozenset
    paths: frozenset[str] = frozenset()  # real paths of the sources
    format: Callable[[str, str], str] | None = (
        None  # text and file to the text as the project has it
    )
    launcher: bool | None = None  # written, removed, or kept up to date where there is one
    known: Mapping[str, str] = field(default_factory=dict)  # source of each file, see `places`

    def stranger(self, file: str) -> str | None:
        """The source of a file if it is known to be another one than those of this run."""
        path = self.known.get(file)
        return path if path is not None and self.paths and path not in self.paths else None

    @property
    def several(self) -> bool:
        return len(self.targets) > 1


@record(kw_only=True)
class Policy:
    """How files edited by hand are treated; with neither they are refused."""

    merge: bool = False
    force: bool = False
    verify: Verify = lambda kernel, file, text: None
