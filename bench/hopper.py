"""Ordinary tile programs for cuda:sm_90a beside the best rivals, one process, contenders taking turns.

    python bench/hopper.py --make KERNELS [--only gemm,attention]     # anywhere: writes the texts
    python bench/hopper.py --prepare KERNELS [--only ...]             # on the device: compiles in parallel
    python bench/hopper.py KERNELS [--only ...] [--rounds 5] [--limit 60] [--json ROWS.jsonl]
    python bench/hopper.py --write docs/performance.md ROWS.jsonl ...

KERNELS holds a folder for each case and, in it, one for each choice of tile sizes; it can be made
elsewhere, so that measuring needs no libcst. Every contender is checked against float32 or better before
it is timed, and again as the graph that is timed. Of our choices, and of each rival's, the fastest of a
first burst takes part in the rounds. `burst`, `steady` and `flush` are those of measure.py; a row of the
result has medians, spreads and the ratio to the best rival of that row. Rivals that are slower than the
best by more than 6 % after two rounds leave the others to the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopper_cases import Case
    from hopper_problems import Problem
    from hopper_timing import Series

ROOT = Path(__file__).parents[1]
TARGET = "cuda:sm_90a"
COPY, OF_COPY = "copy", 0.97  # a ceiling, not a rival: so near to it is enough
NEAR = 0.06  # rivals that are slower by more take no part in later rounds and ways of timing
WORKERS = 12  # processes that compile rivals


def chosen(only: str) -> list[Case]:
    """Cases whose name starts with one of the words; all of them without a word."""
    from hopper_cases import CASES

    words = [word for word in only.split(",") if word]
    return [case for case in CASES if not words or any(case.name.startswith(w) for w in words)]


# ---- before: texts and modules


def make(folder: Path, only: str) -> int:
    """Writes the texts; a choice that is not accepted is said and left out."""
    import tile2c

    for case in chosen(only):
        for label, given in case.ours.items():
            out = folder / case.name / label
            defines = dict(word.split("=") for word in given.split())
            try:
                tile2c.build(ROOT / case.program, out, TARGET, defines, (case.kernel,), force=True)
            except Exception as problem:
                print(f"{case.name} {label}: {type(problem).__name__} {str(problem)[:300]}")
    return 0


def prepare(folder: Path, only: str, rivals: str) -> int:
    """Compiles our texts and TileLang's kernels side by side; both keep what they have compiled."""
    cases = chosen(only)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ours = [path for case in cases for path in (folder / case.name).glob("*/*.cu")]
        jobs = [pool.submit(_compile, path) for path in ours]
        if not rivals or "tilelang" in rivals.lower():
            jobs += [pool.submit(_compile_rivals, only, worker) for worker in range(WORKERS)]
        for job in jobs:
            if words := job.result():
                print(words)
    return 0


def _compile(path: Path) -> str:
    """The module beside its text, noted in the manifest; what ptxas warned about."""
    module = path.with_suffix(".sm_90a.cubin")
    command = ["nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-O3", "-std=c++17", "-cubin"]
    command += ["-Xptxas", "-v", str(path), "-o", str(module)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"{path}: {done.stderr[:300]}"
    said = [x for x in done.stderr.splitlines() if "C75" in x or "bytes spill" in x]
    said = [x.strip() for x in said if " 0 bytes spill stores" not in x]
    return f"{path.parent.parent.name}/{path.parent.name}: {'; '.join(said)}" if said else ""


def _compile_rivals(only: str, worker: int) -> str:
    command = [sys.executable, __file__, "--compile-rivals", str(worker), "--only", only, "."]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return "" if done.returncode == 0 else f"worker {worker}: {done.stderr[-300:]}"


def compile_rivals(only: str, worker: int) -> int:
    """One process of several: its share of TileLang's kernels."""
    number = 0
    for case in chosen(only):
        for label, make_rival in case.problem().rivals.items():
            if not label.startswith("TileLang"):
                continue
            number += 1
            if number % WORKERS == worker:
                try:
                    make_rival()
                except Exception as trouble:  # the measurement will say it again
                    print(f"{case.name} {label}: {trouble}", file=sys.stderr)
    return 0


def modules_in(folder: Path) -> None:
    """Names the modules that lie beside the texts in the manifests, so that nothing is compiled again."""
    import hashlib

    for module in folder.rglob("*.sm_90a.cubin"):
        path = module.parent / "tile2c.json"
        manifest = json.loads(path.read_text())
        (entry,) = manifest["kernels"]
        digest = hashlib.sha256(module.read_bytes()).hexdigest()
        entry["modules"] = [
            {"arch": "sm_90a", "file": module.name, "sha256": digest, "compiler": "nvcc"}
        ]
        path.write_text(json.dumps(manifest))


# ---- the measurement


def contenders(
    case: Case, problem: Problem, folder: Path, rivals: str
) -> dict[str, Callable[[], Any]]:
    """Launches by label; ours start with `tile2c`. What cannot be made is said and left out."""
    import tile2c

    found: dict[str, Callable[[], Any]] = {}
    for label, given in case.ours.items():
        path = folder / case.name / label
        if not (path / "tile2c.json").exists():
            continue
        try:
            kernel = tile2c.load(path, target=TARGET)[case.kernel]
            found[f"tile2c {given}".strip()] = ours(kernel, problem.arguments)
        except Exception as trouble:
            print(f"{case.name} {label}: {type(trouble).__name__} {str(trouble)[:300]}", flush=True)
    wanted = [word.lower() for word in rivals.split(",") if word]
    for name, make_rival in problem.rivals.items():
        if wanted and not any(name.lower().startswith(word) for word in wanted):
            continue
        try:
            found[name] = make_rival()
        except Exception as trouble:
            print(f"{case.name} {name}: {type(trouble).__name__} {str(trouble)[:200]}", flush=True)
    return found


def ours(kernel: Any, arguments: tuple[Any, ...]) -> Callable[[], Any]:
    """A launch of our kernel into an output, and a workspace, of its own: it allocates nothing."""
    import torch

    out = kernel(*arguments)
    given: dict[str, Any] = {}
    if size := kernel.workspace_bytes(*arguments):
        given["workspace"] = torch.empty(size, dtype=torch.uint8, device="cuda")

    def launch() -> Any:
        kernel(*arguments, out, **given)
        return out

    return launch


def graphs_of(
    case: Case, problem: Problem, launches: Mapping[str, Callable[[], Any]]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Graphs of the launches that give the right result when they are replayed; errors of all."""
    import torch
    from measure import relative_error

    want = problem.expected()
    graphs: dict[str, Any] = {}
    errors: dict[str, float] = {}
    for label, launch in launches.items():
        try:
            launch()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = launch()
            if label != COPY:
                out.zero_() if not out.is_floating_point() else out.fill_(float("nan"))
                graph.replay()
                torch.cuda.synchronize()
                errors[label] = relative_error(problem.part(out), want)
                if not errors[label] <= problem.bound:
                    print(f"{case.name} {label}: error {errors[label]:.2e} WRONG", flush=True)
                    continue
            graphs[label] = graph
        except Exception as trouble:
            print(f"{case.name} {label}: {type(trouble).__name__} {str(trouble)[:200]}", flush=True)
    return graphs, errors


def fastest(graphs: dict[str, Any], way: str) -> dict[str, Any]:
    """One of ours and one of each rival with several choices, by a first turn."""
    from hopper_timing import timed

    groups: dict[str, list[str]] = {}
    for label in graphs:
        groups.setdefault(label.split(" ")[0].rstrip(","), []).append(label)
    several = {x: graphs[x] for labels in groups.values() if len(labels) > 1 for x in labels}
    times = timed("burst" if way != "flush" else "flush", several, 1, 30) if several else {}
    for label, series in times.items():
        print(f"  first {label:90.90} {series.median:.4f} ms", flush=True)
    best = [
        min(x, key=lambda label: times[label].median) if len(x) > 1 else x[0]
        for x in groups.values()
    ]
    return {label: graphs[label] for label in graphs if label in best}


def measure(case: Case, folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows of the case, one a way of timing."""
    import torch
    from hopper_timing import timed

    begun = time.monotonic()
    torch.manual_seed(0)
    problem = case.problem()
    launches = contenders(case, problem, folder, options.rivals)
    graphs, errors = graphs_of(case, problem, launches)
    graphs = fastest(graphs, case.ways[0])
    found = []
    ways = [way for way in case.ways if way != "steady" or not options.no_steady]
    for number, way in enumerate(ways):
        left = max(0.0, options.limit - (time.monotonic() - begun)) / (len(ways) - number)
        series = timed(way, graphs, options.rounds, left, partial(near_the_best, graphs))
        found.append(row_of(case, problem, way, series, errors))
        graphs = near_the_best(graphs, series)
    print(f"{case.name}: {time.monotonic() - begun:.1f} s", flush=True)
    return found


def near_the_best(graphs: dict[str, Any], series: Mapping[str, Series]) -> dict[str, Any]:
    """Ours, the copy, and rivals that could be the best of other rounds too."""
    rivals = [x for x in series if not x.startswith("tile2c") and x != COPY]
    bound = min((series[x].median for x in rivals), default=0.0) * (1 + NEAR)
    return {x: g for x, g in graphs.items() if x not in rivals or series[x].median <= bound}


def row_of(
    case: Case,
    problem: Problem,
    way: str,
    series: Mapping[str, Series],
    errors: Mapping[str, float],
) -> dict[str, Any]:
    """Everything about one way of timing one case, ready for JSON."""
    entries = {
        label: {
            "ms": round(x.median, 5),
            "spread": round(x.spread, 4),
            "rounds": len(x.rounds),
            "rate": round(_rate(problem, x.median), 1),
            "error": errors.get(label),
        }
        for label, x in series.items()
    }
    ours = next((x for x in series if x.startswith("tile2c")), None)
    others = [x for x in series if not x.startswith("tile2c") and x != COPY]
    best = min(others, key=lambda x: series[x].median, default=None)
    ratio = round(series[best].median / series[ours].median, 4) if ours and best else None
    copy = round(series[COPY].median / series[ours].median, 4) if ours and COPY in series else None
    met = ratio is not None and (ratio >= case.goal or (copy or 0) >= OF_COPY)
    return {
        "case": case.name, "title": case.title, "way": way, "goal": case.goal, "ours": ours,
        "best": best, "ratio": ratio, "of_copy": copy, "met": met,
        "unit": "GB/s" if problem.bytes else "TFLOP/s",
        "contenders": entries,
    }  # fmt: skip


def _rate(problem: Problem, ms: float) -> float:
    return problem.bytes / ms / 1e6 if problem.bytes else problem.flops / ms / 1e9


def say(row: Mapping[str, Any]) -> None:
    for label, x in row["contenders"].items():
        print(
            f"  {row['way']:6} {label:76.76} {x['ms']:.4f} ms {x['rate']:7.1f} {row['unit']} "
            f"±{x['spread'] * 50:.1f} % of {x['rounds']}"
        )
    met = "" if row["ratio"] is None else "met" if row["met"] else "MISSED"
    print(
        f"  {row['way']:6} {row['title']}: {row['ratio']} of {row['best']}, goal {row['goal']} {met}"
    )


def versions() -> dict[str, str]:
    """What the numbers belong to."""
    import torch

    found = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name in ("triton", "tilelang"):
        try:
            found[name] = str(__import__(name).__version__)
        except Exception:
            found[name] = "not there"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", help="the folder with kernels, or rows for --write")
    parser.add_argument("--only", default="", help="first words of the cases' names, with commas")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--compile-rivals", default="", help=argparse.SUPPRESS)
    parser.add_argument("--write", metavar="DOCUMENT")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--limit", type=float, default=60, help="seconds a case, one round at least"
    )
    parser.add_argument(
        "--rivals", default="", help="first words of the rivals' names, with commas"
    )
    parser.add_argument("--no-steady", action="store_true")
    parser.add_argument("--json", metavar="FILE", help="rows are added to it")
    options = parser.parse_args()
    folder = Path(options.paths[0])
    if options.write:
        from hopper_report import write

        return write(Path(options.write), [Path(path) for path in options.paths])
    if options.compile_rivals:
        return compile_rivals(options.only, int(options.compile_rivals))
    if options.make or options.prepare:
        done = (
            make(folder, options.only)
            if options.make
            else prepare(folder, options.only, options.rivals)
        )
        if options.prepare:
            modules_in(folder)
        return done
    head = versions()
    print(head)
    missed = 0
    for case in chosen(options.only):
        try:
            rows = measure(case, folder, options)
        except Exception as trouble:  # one that cannot be measured leaves the others
            print(f"{case.name}: {type(trouble).__name__} {trouble}", flush=True)
            missed += 1
            continue
        for row in rows:
            say(row)
            missed += not row["met"]
            if options.json:
                with Path(options.json).open("a") as file:
                    file.write(json.dumps({**row, "versions": head}) + "\n")
    print("goals missed:", missed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
