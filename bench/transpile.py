"""How long the transpiler, the vendor's compiler and the emulator take, each as a whole process.

    python bench/transpile.py [--runs 5]

Prints one line a command: the median and the spread of its wall time, its processor time (children
included, which tells more on a busy machine), and the wall time that is the aim. The emulator's own
library is compiled once for a user, before the first timed run; the kernel is compiled in each.
"""

from __future__ import annotations

import argparse
import os
import resource
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
    """One command and the time that it should take at most, in seconds."""

    title: str
    command: list[str]
    aim: float


def rows(out: Path) -> list[Row]:
    """The commands, in the order in which the later ones need what the earlier ones wrote."""
    run = [*TILE2C, "run", str(out), "--kernel", "gemm", "--backend", "emulate", "--sizes", SIZES]
    found = [
        Row("tile2c samples/gemm.py", [*TILE2C, str(SAMPLES / "gemm.py"), "-o", str(out)], 0.7),
        Row("gemm 512^3 fp16 emulated, compiled in the run", run, 1.5),
        Row("the same, races and memory checked", [*run, "--check", "races,memory"], 4.0),
    ]
    if shutil.which("nvcc"):
        flags = ["-arch=sm_80", "-O3", "-std=c++17", "-cubin", "-o", str(out / "gemm.cubin")]
        found.insert(1, Row("nvcc gemm.cu", ["nvcc", *flags, str(out / "gemm.cu")], 1.0))
    return found


def seconds(row: Row, cache: Path) -> tuple[float, float]:
    """Wall and processor time of one run; its output is dropped, a failure ends the script."""
    for module in cache.glob("emulate/kernel-*"):
        module.unlink()
    before, start = _processor(), time.perf_counter()
    subprocess.run(
        row.command,
        check=True,
        env=_environment(cache),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - start, _processor() - before


def _environment(cache: Path) -> dict[str, str]:
    """As an installed package runs: compiled modules are kept, whatever this shell has set."""
    kept = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "TILE2C_CACHE": str(cache)}


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each command")
    runs = parser.parse_args().runs
    heads = ("median", "least", "most", "cpu", "aim")
    print(f"{'seconds, whole process':46}", *(f"{head:>7}" for head in heads))
    with tempfile.TemporaryDirectory() as folder:
        cache, out = Path(folder) / "cache", Path(folder) / "out"
        for row in rows(out):
            seconds(row, cache)  # not counted: files come into the page cache, the library is built
            wall, cpu = zip(*(seconds(row, cache) for _ in range(runs)), strict=True)
            shown = (statistics.median(wall), min(wall), max(wall), statistics.median(cpu), row.aim)
            print(f"{row.title:46}", *(f"{value:7.2f}" for value in shown), flush=True)


if __name__ == "__main__":
    main()
