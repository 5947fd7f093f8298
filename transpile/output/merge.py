"""Three-way merge of a base, the file that people edited, and the newly generated text."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.output import anchors, header, moves, renames
from tile2c.transpile.record import record

# Stand for the version and the digest in all three texts: they differ without anybody's doing.
_VERSION, _DIGEST = "\x01", "\x02"


@record
class Merged:
    """The merged text, with the edited file's line ends; `conflicts` counts the marked places.

    `names` are those that changed in the source and that the edits now follow.
    """

    text: str
    conflicts: int
    names: tuple[tuple[str, str], ...] = ()


def merge(base: str, edited: str, generated: str, name: str) -> Merged:
    """Applies what people changed since `base` to `generated`; conflicts are marked as git does.

    git does the merge, whatever its configuration says. Raises InputError where there is no git.
    """
    before, mine, new = _lines(base), _lines(edited), _lines(generated)
    names = renames.renamed(before, new, mine)
    people = set(mine.split("\n")) - set(before.split("\n"))
    followed = {old: new for old, new in names.items() if renames.uses(old, people)}
    before, own = renames.apply(names, before), renames.apply(names, mine)
    text, conflicts = _merge_text(own, before, new, name)
    text = text.replace(_VERSION, header.version(generated)).replace(
        _DIGEST, header.written_digest(generated)
    )
    if edited.count("\r\n") * 2 > edited.count("\n"):
        text = text.replace("\n", "\r\n")
    mark = "\ufeff" if edited.startswith("\ufeff") else ""
    return Merged(mark + text, conflicts, tuple(followed.items()))


def _merge_text(edited: str, base: str, generated: str, name: str) -> tuple[str, int]:
    """With anchors where that helps, and parts in the new text's order where they moved."""
    best = _merge_file(edited, base, generated, name)
    if not best[1] or not anchors.can_anchor(edited, base, generated):
        return best
    best = min(best, _merge_anchored(edited, base, generated, name), key=_conflicts)
    if best[1] and (moved := moves.followed(base, edited, generated)) is not None:
        old, own = moved
        best = min(best, _merge_anchored(own, old, generated, name), key=_conflicts)
    return best


def _conflicts(merged: tuple[str, int]) -> int:
    return merged[1]


def _merge_anchored(edited: str, base: str, generated: str, name: str) -> tuple[str, int]:
    texts = (anchors.anchored(text) for text in (edited, base, generated))
    text, conflicts = _merge_file(next(texts), next(texts), next(texts), name)
    return anchors.without(text), conflicts


def _merge_file(edited: str, base: str, generated: str, name: str) -> tuple[str, int]:
    """`git merge-file` on three texts: the result, and how many conflicts it marks."""
    git = shutil.which("git")
    if git is None:
        raise failure(
            "T2C614",
            "merging needs git, and there is none",
            None,
            help="install git, or use --force",
        )
    with tempfile.TemporaryDirectory(prefix="tile2c-") as folder:
        paths = []
        for role, text in (("edited", edited), ("base", base), ("generated", generated)):
            paths.append(Path(folder, role))
            paths[-1].write_bytes(text.encode("utf-8", "surrogateescape"))
        labels = ("-L", f"{name} as edited", "-L", f"{name} before", "-L", f"{name} as generated")
        # Whatever people configured, the text must not depend on it.
        settings = ("-c", "merge.conflictStyle=merge", "-c", "diff.algorithm=histogram")
        command = [git, *settings, "merge-file", "-p", *labels, *map(str, paths)]
        done = subprocess.run(command, capture_output=True, cwd=folder, check=False)
    if done.returncode < 0 or done.returncode > 127:
        raise failure(
            "T2C614", f"git could not merge: {done.stderr.decode(errors='replace')}", None
        )
    return done.stdout.decode("utf-8", "surrogateescape"), done.returncode


def _lines(text: str) -> str:
    """The text without what changes by itself in its header; it ends in a line end."""
    whole = header.neutral(header.normalized(text), _VERSION, _DIGEST)
    return whole if whole.endswith("\n") or not whole else whole + "\n"
