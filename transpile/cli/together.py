"""Options and names that cannot be: each refusal says what to type instead."""

from __future__ import annotations

from pathlib import Path

from tile2c.transpile.cli.status import UsageProblem, nearest
from tile2c.transpile.diagnostics.diagnostic import failure

ALIKE = 0.7  # how alike the names of files have to be: a word of the same length is none


def folder_above(folder: Path, verb: str) -> str | None:
    """What to type for one of the sub-folders in which an output folder has its targets."""
    from tile2c.runtime.records import read_records
    from tile2c.transpile.output.layout import target_folder

    try:
        targets = sorted({record.target for record in read_records(folder.parent)})
    except (FileNotFoundError, ValueError):
        return None
    found = next((target for target in targets if target_folder(target) == folder.name), None)
    return found and f"tile2c {verb} {folder.parent.as_posix()} --target {found}"


def check_switches(
    *, check: bool, pristine: bool, merge: bool, force: bool, compile_modules: bool
) -> None:
    """Refuses options of generating that contradict each other or lack another one."""
    if merge and force:
        raise UsageProblem(
            "T2C001",
            "--merge and --force exclude each other",
            "--merge keeps edits, --force replaces them",
        )
    if pristine and not check:
        raise UsageProblem(
            "T2C001", "--pristine only means something with --check", "--check --pristine"
        )
    if check and (merge or force or compile_modules):
        other = "--merge" if merge else "--force" if force else "--compile"
        raise UsageProblem(
            "T2C001",
            f"--check writes nothing, so {other} cannot go with it",
            f"{other} alone, then --check",
        )


def no_such_file(path: Path, option: str = "") -> UsageProblem:
    """For a file that is not there, or is a folder; names the one most like it that is there."""
    told = f"{option}: " if option else ""
    if path.is_dir():
        return UsageProblem(
            "T2C003",
            f"{told}{path} is a folder, not a file",
            "name a file in it" if option else None,
        )
    suffix = path.suffix or ".py"
    try:
        beside = sorted(item.name for item in path.parent.glob(f"*{suffix}"))
    except OSError:
        beside = []
    near = nearest(path.stem, [Path(name).stem for name in beside], alike=ALIKE)
    near = next((name for name in beside if Path(name).stem == near), None)
    hint = f"did you mean {path.with_name(near).as_posix()}?" if near else None
    return UsageProblem("T2C003", f"{told}no such file: {path}", hint)


def check_folder_name(out: str) -> None:
    """Refuses what cannot be an output folder: no name, a file, a name below a file."""
    if not out:
        raise UsageProblem("T2C001", "the name after -o is empty", "-o . for the current folder")
    path = Path(out)
    try:
        file = next((one for one in (path, *path.parents) if one.exists()), Path())
        if not file.is_dir():
            raise UsageProblem(
                "T2C001", f"-o {out}: {file} is a file, not a folder", f"-o {_folder_beside(file)}"
            )
    except OSError as error:
        raise UsageProblem("T2C001", f"-o {out}: {error.strerror}", "-o out") from error


def _folder_beside(file: Path) -> str:
    """A name that is free, or a folder: what the file's own name suggests."""
    other = file.with_suffix("") if file.suffix else file.with_name(f"{file.name}_out")
    return f"{other.as_posix()}/" if not other.is_file() else "out/"


def refuse_marks(file: Path) -> None:
    """Conflict marks are told before anything that is true of an edited file."""
    from tile2c.runtime.backends.texts import read_kernel

    try:
        read_kernel(file)
    except ValueError as error:
        raise failure("T2C703", str(error), None) from error
    except OSError:  # told where the text is needed
        return
