"""Runs the samples' kernels of a folder on the device, for a checker around it:

    python bench/sanitize.py --texts OUT cuda:sm_80            # the samples at small sizes with tails
    python bench/sanitize.py OUT cuda:sm_80                    # compiles them, tells whether they are right
    compute-sanitizer --tool memcheck python bench/sanitize.py OUT cuda:sm_80 [NAME...]
    compute-sanitizer --tool racecheck python bench/sanitize.py OUT cuda:sm_80 [NAME...]

NumPy arrays only, so that nothing but the kernels runs. Sizes are those of tests/dialects/sample_sizes.py.
"""

from __future__ import annotations

import runpy
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import tile2c

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "dialects"))

from sample_sizes import SMALL

SAMPLES = Path(__file__).parents[1] / "samples"
REFERENCES = runpy.run_path(str(SAMPLES / "references.py"))
BOUNDS = {"quantize_fp8": 0.05}  # the others: as far as half rounds


def texts(folder: str, target: str) -> None:
    """A kernel file for each sample, all in one folder; a sample that this chip cannot run says why."""
    from tile2c.transpile.cli.main import main as command

    for name, small in SMALL.items():
        defines = [word for pair in small.choices.items() for word in ("-D", "{}={}".format(*pair))]
        source = str(SAMPLES / f"{name}.py")
        if command([source, "-o", folder, "--target", target, *defines]):
            print(f"left out: {name}")


def wrong(name: str, kernel: Any) -> bool:
    """Runs one kernel and tells how far its first output is from the NumPy reference."""
    small = SMALL[name]
    inputs = small.arrays("float8_e4m3fn")
    function = REFERENCES[name]
    own = {key: v for key, v in small.choices.items() if key in signature(function).parameters}
    want = first(function(*inputs, **own))
    found = kernel(*inputs)
    got = first(inputs[-1] if found is None else found)
    error = float(np.linalg.norm(got - want) / np.linalg.norm(want))
    print(f"{name}: error {error:.1e}", flush=True)
    return error > BOUNDS.get(name, 2e-3)


def first(found: Any) -> Any:
    """The result, or the first of several."""
    return np.asarray(found[0] if isinstance(found, tuple | list) else found).astype(np.float64)


def main() -> int:
    if sys.argv[1] == "--texts":
        texts(*sys.argv[2:4])
        return 0
    folder, target, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    kernels = tile2c.load(folder, "cuda", target)
    return sum(wrong(name, kernels[name]) for name in names or kernels)


if __name__ == "__main__":
    sys.exit(main())
