"""Runs the public examples' own checks on the kernels that tile2c writes for them.

Each example is run in a process of its own, as its author wrote it, with a stand-in for `tilelang`
(tilelang_standin.py) and at the sizes of runs.toml.

    python tests/examples/reference_runs.py EXAMPLES OUT [--dry] [--jobs N] [--part I/N] [FILE ...]
    python tests/examples/reference_runs.py EXAMPLES OUT --emulate --call 'main(1, 2, 128, ...)' FILE

needs torch; a device unless `--dry`, with which kernels are only made and their arguments bound. One line
a file, and the counts. With `--emulate` the emulator runs them, at small sizes that `--call` gives. Texts
stay in OUT, so that a dry run elsewhere can make them beforehand.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import runpy
import subprocess
import sys
import time
import tomllib
import types
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SECONDS = 300
MARK = "result: "


def table() -> dict[str, dict[str, Any]]:
    """File -> `call` (an expression of its module), `argv` (it is run as a script), or `skip` (why not)."""
    return tomllib.loads((HERE / "runs.toml").read_text(encoding="utf-8"))


def run_here(
    root: Path, name: str, out: Path, *, dry: bool, emulate: bool = False, call: str = ""
) -> dict[str, Any]:
    """Runs one example in this process; what became of it."""
    import torch

    sys.path.insert(0, str(HERE))
    import tilelang_standin as standin

    run = {"call": call} if call else table().get(name, {})
    settings = standin.Settings(out, dry=dry, emulate=emulate)
    standin.install(settings)
    if dry or emulate:
        _without_device(torch)
    path = root / name
    sys.path.insert(0, str(path.parent))
    os.chdir(path.parent)
    torch.manual_seed(0)
    words = ""
    try:
        sys.argv = [str(path), *run.get("argv", ())]
        if "argv" in run:
            runpy.run_path(str(path), run_name="__main__")
        else:
            module = _imported(path)
            for known in list(sys.modules.values()):
                if str(getattr(known, "__file__", "")).startswith(str(root)):
                    standin.count_comparisons(known)
            if call := run.get("call", "main()" if hasattr(module, "main") else ""):
                eval(call, vars(module))
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        words = f"{type(error).__name__}: {error}"
        if isinstance(error, AssertionError) and not str(error):
            words = "AssertionError"
        if "E2E_TRACE" in os.environ:
            raise
    if settings.differences and not words:
        words = f"AssertionError: {settings.differences[0]} ({len(settings.differences)} in all)"
    status = _status(words, settings.compared, len(settings.kernels))
    return {
        "file": name,
        "status": status,
        "kernels": sorted(set(settings.kernels)),
        "compared": settings.compared,
        "words": words.strip()[:600],
    }


def _status(words: str, compared: int, called: int) -> str:
    if words.startswith("AssertionError"):
        return "differs"
    if words:
        return "fails"
    return "agrees" if compared and called else "unchecked"


def _imported(path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _without_device(torch: Any) -> None:
    """torch makes everything on the CPU whatever it is asked for."""
    from torch.overrides import TorchFunctionMode

    class OnCpu(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = dict(kwargs or {})
            if "cuda" in str(kwargs.get("device", "")):
                kwargs["device"] = "cpu"
            args = tuple("cpu" if isinstance(a, str) and a.startswith("cuda") else a for a in args)
            return function(*args, **kwargs)

    OnCpu().__enter__()
    torch.Tensor.cuda = lambda self, *args, **keywords: self
    torch.nn.Module.cuda = lambda self, *args, **keywords: self
    for name in ("synchronize", "manual_seed_all", "manual_seed", "empty_cache", "set_device"):
        setattr(torch.cuda, name, lambda *args, **keywords: None)
    torch.cuda.current_device = lambda: 0
    torch.cuda.is_available = lambda: True
    torch.cuda.get_device_capability = lambda *args: (9, 0)
    torch.cuda.get_device_properties = lambda *args: types.SimpleNamespace(
        multi_processor_count=132, name="H200", major=9, minor=0
    )


def run_apart(root: Path, name: str, out: Path, *, dry: bool, seconds: int) -> dict[str, Any]:
    """Runs one example in a process of its own."""
    run = table().get(name, {})
    base = {"file": name, "kernels": [], "compared": 0}
    if "skip" in run:
        return {**base, "status": "skipped", "words": run["skip"]}
    command = [sys.executable, __file__, str(root), str(out), "--one", name]
    command += ["--dry"] if dry else []
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {**base, "status": "fails", "words": f"still running after {seconds} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not lines:
        tail = (done.stderr.strip().splitlines() or ["it ends without a word"])[-1]
        return {**base, "status": "fails", "words": tail[:600]}
    found = json.loads(lines[-1].removeprefix(MARK))
    return {**found, "seconds": round(time.monotonic() - start, 1)}


def report(found: list[dict[str, Any]]) -> str:
    """The counts, then each file."""
    counts = Counter(entry["status"] for entry in found)
    head = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    lines = [
        f"  {entry['status']:9} {entry['file']}"
        + (f": {entry['words'].splitlines()[0]}" if entry["words"] else "")
        for entry in sorted(found, key=lambda entry: (entry["status"], entry["file"]))
    ]
    return "\n".join([f"{len(found)} files: {head}", *lines])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--one")
    parser.add_argument("--emulate", action="store_true")
    parser.add_argument("--call", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--part", default="0/1")
    options = parser.parse_intermixed_args()
    root, out = options.root.resolve(), options.out.resolve()
    if options.emulate and options.files:
        (options.one,) = options.files
    if options.one:
        with contextlib.redirect_stdout(sys.stderr):
            found = run_here(
                root,
                options.one,
                out,
                dry=options.dry,
                emulate=options.emulate,
                call=options.call,
            )
        print(MARK + json.dumps(found))
        return 0
    sys.path.insert(0, str(HERE))
    from public_examples import listed

    index, parts = map(int, options.part.split("/"))
    names = options.files or listed()[index::parts]
    results = []
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = [
            pool.submit(run_apart, root, name, out, dry=options.dry, seconds=options.seconds)
            for name in names
        ]
        for run in as_completed(runs):
            print(json.dumps(run.result()), flush=True)
            results.append(run.result())
    print(report(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
