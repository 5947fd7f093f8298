"""What becomes of one kernel file: written, left alone, merged, or refused."""

from __future__ import annotations

from pathlib import Path

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.output import header
from tile2c.transpile.output.commit import read_text
from tile2c.transpile.output.generated import GeneratedKernel
from tile2c.transpile.output.layout import base_file
from tile2c.transpile.output.manifest import Entry
from tile2c.transpile.output.scope import Policy
from tile2c.transpile.record import record

TWO_WAYS = "--merge keeps the edits, --force saves the edited file as {file}.orig and overwrites it"


@record(kw_only=True)
class Decision:
    """`text` is what the file holds afterwards, `base` what it then started from."""

    text: str
    base: str
    saved: str | None = None  # the edited text that --force puts aside
    edited: bool = False  # the file differs from its base afterwards
    conflicts: int = 0


@record(kw_only=True)
class Found:
    """One kernel file as it stands in OUT."""

    text: str | None
    base: str | None
    entry: Entry | None

    @property
    def edited(self) -> bool:
        """Whether somebody changed the file since it was generated."""
        if self.text is None:
            return False
        if self.base is not None and header.normalized(self.base) == header.normalized(self.text):
            return False
        if self.base and header.digest_remark(self.base) != header.digest_remark(self.text):
            return True
        return not header.is_as_generated(self.text)

    @property
    def foreign(self) -> bool:
        """Whether nothing says that tile2c wrote the file."""
        known = self.base is not None or self.entry is not None
        return self.text is not None and self.edited and not known


def find(folder: Path, file: str, entry: Entry | None) -> Found:
    """Reads a kernel file and its base."""
    return Found(
        text=read_text(folder / file), base=read_text(folder / base_file(file)), entry=entry
    )


def decide(
    kernel: GeneratedKernel, file: str, found: Found, policy: Policy, diagnostics: Diagnostics
) -> Decision | None:
    """The decision for one file, or None after a refusal, which goes to `diagnostics`."""
    text = header.sign(kernel.text)
    written = Decision(text=text, base=text)
    if found.text is None:
        return written
    if header.normalized(found.text) == header.normalized(text):
        return Decision(text=found.text, base=text)
    if policy.force:
        return Decision(text=text, base=text, saved=found.text if found.edited else None)
    if header.has_conflict_marks(found.text):
        _refuse_marks(file, diagnostics)
        return None
    if not found.edited:
        return written
    if found.foreign:
        diagnostics.error(
            "T2C612",
            f"{file} was not written by tile2c",
            None,
            help=f"move it away, or --force to save it as {file}.orig and write the kernel",
            file=file,
        )
        return None
    if found.base is not None and header.body(found.base) == header.body(text):
        diagnostics.note("T2C610", f"{file} was edited by hand and stays as it is", file=file)
        return Decision(text=found.text, base=found.base, edited=True)
    if policy.merge:
        return _merged(kernel, file, text, found, policy, diagnostics)
    diagnostics.error(
        "T2C601",
        f"{file} was edited by hand, and the newly generated text differs from the one it "
        "started from",
        None,
        help=TWO_WAYS.format(file=file),
        file=file,
    )
    return None


def _merged(
    kernel: GeneratedKernel,
    file: str,
    text: str,
    found: Found,
    policy: Policy,
    diagnostics: Diagnostics,
) -> Decision | None:
    if found.base is None or found.text is None or header.has_conflict_marks(found.base):
        what = "holds conflict marks" if found.base else "is missing"
        diagnostics.error(
            "T2C613",
            f"{file} was edited by hand, and its base {base_file(file)} {what}",
            None,
            help=f"restore the base, or --force to save the edited file as {file}.orig",
            file=file,
        )
        return None
    from tile2c.transpile.output.merge import merge

    result = merge(found.base, found.text, text, file)
    if result.names:
        changed = ", ".join(f"{old} is {new} now" for old, new in result.names)
        diagnostics.note("T2C615", f"{file}: {changed}, in the edits too", file=file)
    if result.conflicts:
        places = "one place" if result.conflicts == 1 else f"{result.conflicts} places"
        diagnostics.error(
            "T2C604",
            f"{file} has conflicts in {places}, marked as git marks them",
            None,
            help="resolve them in the file; what it is compared with is already the new text",
            file=file,
        )
    elif problem := policy.verify(kernel, file, result.text):
        diagnostics.error(
            "T2C605",
            f"{file} merges without conflicts but no longer compiles: {problem}",
            None,
            help="change the file so that it fits the new text, or --force to overwrite it",
            file=file,
        )
        return None
    return Decision(text=result.text, base=text, edited=True, conflicts=result.conflicts)


def _refuse_marks(file: str, diagnostics: Diagnostics) -> None:
    diagnostics.error(
        "T2C603",
        f"{file} holds conflict marks",
        None,
        help=f"resolve the conflicts in {file} first",
        file=file,
    )
