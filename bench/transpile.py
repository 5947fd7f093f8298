"""How long the transpiler, the vendor's compiler and the emulator take, each as a whole process.

    python bench/transpile.py [--runs 5]

Prints one line a command with the median and the spread of the wall time in seconds, and the time
that is the aim. The emulator starts without anything compiled before: its caches are new folders.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
TILE2C = [sys.executable, "-m", "tile2c"]
SIZES = "M=512,N=512,K=512"


@dataclass(frozen=True)
class Row:
    """One command; `fresh` means that every run starts with empty caches."""

    title: str
    command: list[str]
    aim: float
    fresh: bool = False


def rows(out: Path) -> list[Row]:
    """The commands, in the order in which the later ones need what the earlier ones wrote."""
    run = [*TILE2C, "run", str(out), "--kernel", "gemm", "--backend", "emulate", "--sizes", SIZES]
    found = [
        Row("tile2c samples/gemm.py", [*TILE2C, str(SAMPLES / "gemm.py"), "-o", str(out)], 0.7),
        Row("gemm 512^3 fp16, emulated, compiled first", run, 1.5, fresh=True),
        Row("the same, races and memory checked", [*run, "--check", "races,memory"], 4.0, True),
    ]
    if shutil.which("nvcc"):
        flags = ["-arch=sm_80", "-O3", "-std=c++17", "-cubin", "-o", str(out / "gemm.cubin")]
        found.insert(1, Row("nvcc gemm.cu", ["nvcc", *flags, str(out / "gemm.cu")], 1.0))
    return found


def seconds(row: Row) -> float:
    """The wall time of one run of the command; its output is dropped, a failure ends the script."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, **({"XDG_CACHE_HOME": cache} if row.fresh else {})}
        start = time.perf_counter()
        subprocess.run(
            row.command,
            check=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each command")
    runs = parser.parse_args().runs
    print(f"{'whole process, wall seconds':44} {'median':>7} {'least':>7} {'most':>7} {'aim':>6}")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        for row in rows(out):
            seconds(row)  # once without counting: files come into the page cache
            times = [seconds(row) for _ in range(runs)]
            shown = (statistics.median(times), min(times), max(times))
            print(f"{row.title:44}", *(f"{value:7.2f}" for value in shown), f"{row.aim:6.1f}")


if __name__ == "__main__":
    main()
