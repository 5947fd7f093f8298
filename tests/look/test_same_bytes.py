"""The same input gives the same bytes: whatever the hash seed, the folder and the locale."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from look_texts import ALL, SAMPLES, TARGETS


def outputs(folder: Path, **environment: str) -> dict[str, bytes]:
    """Everything that one run writes, for all samples and targets that take them all."""
    folder.mkdir(parents=True)
    for name in ALL:
        shutil.copy(SAMPLES / f"{name}.py", folder)
    for targets, names in (
        ([t for t in TARGETS if TARGETS[t] == ALL], ALL),
        (list(TARGETS), ("add", "row_sum", "softmax")),
    ):
        out = folder / f"out{len(targets)}"
        command = [sys.executable, "-m", "tile2c", *(f"{name}.py" for name in names)]
        subprocess.run(
            [*command, "-o", str(out), "--target", ",".join(targets)],
            cwd=folder,
            env={**os.environ, **environment},
            check=True,
            capture_output=True,
        )
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("out*/**/*"))
        if path.is_file()
    }


def test_same_bytes(tmp_path: Path) -> None:
    first = outputs(tmp_path / "a", PYTHONHASHSEED="1", LC_ALL="C")
    deep = tmp_path / "b" / "with space" / "ü"
    second = outputs(deep, PYTHONHASHSEED="2", LC_ALL="C.UTF-8", TZ="Asia/Tokyo")
    third = outputs(tmp_path / "c", PYTHONHASHSEED="3", LC_ALL="POSIX", PYTHONUTF8="1")
    assert first.keys() == second.keys() == third.keys()
    assert [name for name in first if first[name] != second[name]] == []
    assert [name for name in first if first[name] != third[name]] == []
    assert not any(str(tmp_path).encode() in content for content in first.values())
