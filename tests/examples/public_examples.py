"""Runs the public examples' kernels through the command, one at a time, and counts what comes out.

    python tests/examples/public_examples.py EXAMPLES OUT [--jobs N] [FILE ...]

What became of a file is kept in OUT: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TARGET = "cuda:sm_90a"
SECONDS = 120
FRONT = ("T2C1", "T2C2")  # codes of the stages in front of lowering


@dataclass(frozen=True)
class Outcome:
    """How far a kernel got: "refused", "staged", "written" or "compiled", and what stopped it."""

    file: str
    kernel: str
    reached: str
    problem: str = ""
    spilled: int = 0  # bytes of stores to local memory that are no accesses of arrays
    registers: int = 0


def table() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """File -> kernel, factory or `*` -> the values that nothing in the file fixes."""
    return tomllib.loads((HERE / "defines.toml").read_text(encoding="utf-8"))


def listed() -> list[str]:
    """The files that are tried: those of the language's first two stages."""
    lines = (HERE / "files.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def defines(name: str) -> list[str]:
    """The `-D` options of a file."""
    options: list[str] = []
    for owner, values in table().get(name, {}).items():
        for key, value in values.items():
            options += ["-D", f"{key}={value}" if owner == "*" else f"{owner}.{key}={value}"]
    return options


def kernels(path: Path, name: str) -> list[str]:
    """The names of a file's kernels; none where listing fails."""
    done = _run([str(path), "--list", "--format", "json", "--target", TARGET, *defines(name)])
    if done.returncode != 0:
        return []
    return list(dict.fromkeys(entry["name"] for entry in json.loads(done.stdout)))


def outcomes(root: Path, name: str, out: Path, compiler: str | None) -> list[Outcome]:
    """Every kernel of one example, as `out` knows it or found now."""
    kept = out / name.removesuffix(".py").replace("/", "__") / "outcomes.json"
    if kept.is_file():
        return [Outcome(**entry) for entry in json.loads(kept.read_text(encoding="utf-8"))]
    found = list(_outcomes(root, name, out, compiler))
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps([asdict(one) for one in found], indent=1), encoding="utf-8")
    return found


def _outcomes(root: Path, name: str, out: Path, compiler: str | None) -> Iterator[Outcome]:
    """Every kernel: written by the command, then compiled where there is nvcc."""
    found = kernels(root / name, name)
    if not found:
        yield Outcome(name, "", "refused", "no kernel is found")
    for kernel in found:
        folder = out / name.removesuffix(".py").replace("/", "__") / kernel
        options = ["-o", str(folder), "--target", TARGET, "--kernel", kernel, "--format", "json"]
        done = _run([str(root / name), *options, *defines(name)])
        if done.returncode != 0:
            problem = _problem(done.stderr) or f"exit status {done.returncode}"
            reached = "refused" if problem.startswith(FRONT) else "staged"
            yield Outcome(name, kernel, reached, problem)
        elif compiler is None:
            yield Outcome(name, kernel, "written")
        else:
            yield _compiled(name, kernel, folder, compiler)


def _compiled(name: str, kernel: str, folder: Path, compiler: str) -> Outcome:
    (text,) = folder.glob("*.cu")
    arch = "arch=compute_90a,code=sm_90a"
    command = [compiler, "-gencode", arch, "-std=c++17", "-cubin", str(text), "-o", f"{text}.cubin"]
    command += ["-Xptxas", "-v"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode == 0:
        spilled, used = (
            max(map(int, re.findall(form, done.stderr)), default=0)
            for form in (r"(\d+) bytes spill stores", r"Used (\d+) registers")
        )
        return Outcome(name, kernel, "compiled", spilled=spilled, registers=used)
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    return Outcome(name, kernel, "written", errors[0] if errors else "the compiler fails")


def _run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tile2c", *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"more than {SECONDS} s")


def _problem(stderr: str) -> str:
    for line in stderr.splitlines():
        if line.startswith("{"):
            item = json.loads(line)
            if item["severity"] == "error":
                return f"{item['code']} {item['message']}"
    return stderr.strip().splitlines()[-1] if stderr.strip() else ""


def report(found: list[Outcome]) -> str:
    """The counts, then what stopped the others."""
    counts = Counter(outcome.reached for outcome in found)
    total = len(found)
    staged = total - counts["refused"]
    written = staged - counts["staged"]
    head = f"{total} kernels: staged {staged}, written {written}, compiled {counts['compiled']}"
    rest = [o for o in found if o.problem]
    lines = [f"  {o.file} {o.kernel}: {o.problem}" for o in sorted(rest, key=lambda o: o.problem)]
    spills = [o for o in found if o.spilled]
    told = [f"{len(spills)} kernels spill registers:"] if spills else []
    told += [f"  {o.file} {o.kernel}: {o.spilled} bytes, {o.registers} registers" for o in spills]
    return "\n".join([head, *lines, *told])


def main() -> None:
    """Several files at once with `--jobs N`; of them only every Nth with `--part I/N`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--part", default="0/1")
    options = parser.parse_intermixed_args()
    index, parts = map(int, options.part.split("/"))
    names = options.files or listed()[index::parts]
    compiler = shutil.which("nvcc")
    found: list[Outcome] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(outcomes, options.root, name, options.out, compiler) for name in names]
        for run in as_completed(runs):
            found += run.result()
            for one in run.result():
                print(json.dumps(asdict(one)), flush=True)
    print(report(found))


if __name__ == "__main__":
    main()
