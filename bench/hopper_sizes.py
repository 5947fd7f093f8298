"""One text for many sizes: beside texts made for each size alone, on one device.

    python bench/hopper_sizes.py --make KERNELS      # anywhere: writes the texts
    python bench/hopper_sizes.py KERNELS             # on the device: right, then burst rates

A GEMM whose sizes are free, in each choice of tile sizes, beside the same program with M, N and K given
(`-D M=4096 ...`), in the same choices. The best of the latter is what a specialist would ship for that
size; the ratio says how much of it the one text reaches. Prints a table, and the worst ratio of each text.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from hopper import TARGET, _compile, graphs_of, modules_in, ours
from hopper_cases import WIDE, WIDE3, Case

ROOT = Path(__file__).parents[1]
SIZES = (
    (8192, 8192, 8192),
    (4096, 4096, 4096),
    (6144, 5120, 7168),
    (2048, 8192, 4096),
    (5000, 6008, 3000),
)
TILES = {"four stages": WIDE, "three stages": WIDE3}


def name_of(size: tuple[int, int, int]) -> str:
    return "x".join(map(str, size))


def texts() -> dict[str, str]:
    """Folder -> values for -D."""
    found = {f"free/{label}": given for label, given in TILES.items()}
    for size in SIZES:
        fixed = " ".join(f"{axis}={n}" for axis, n in zip("MNK", size, strict=True))
        found |= {f"{name_of(size)}/{label}": f"{given} {fixed}" for label, given in TILES.items()}
    return found


def make(folder: Path) -> None:
    import tile2c

    for label, given in texts().items():
        defines = dict(word.split("=") for word in given.split())
        tile2c.build(
            ROOT / "samples/gemm.py", folder / label, TARGET, defines, ("gemm",), force=True
        )


def prepare(folder: Path) -> None:
    """Compiles what is not compiled yet, side by side."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as pool:
        for words in pool.map(_compile, sorted(folder.glob("*/*/*.cu"))):
            if words:
                print(words)
    modules_in(folder)


def measure(folder: Path, size: tuple[int, int, int], rounds: int) -> dict[str, float]:
    """Milliseconds of each text that takes this size, by its folder."""
    import tile2c
    from hopper_problems import product
    from hopper_timing import timed

    problem = product(*size, "fp16", (), "")
    case = Case(
        name=name_of(size), title="", program="samples/gemm.py", kernel="gemm", ours={},
        problem=lambda: problem, goal=0.95,
    )  # fmt: skip
    launches = {
        f"{kind}/{label}": ours(
            tile2c.load(folder / kind / label, target=TARGET)["gemm"], problem.arguments
        )
        for kind in ("free", case.name)
        for label in TILES
    }
    graphs, _ = graphs_of(case, problem, launches)
    return {x: series.median for x, series in timed("burst", graphs, rounds, 20).items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.make:
        make(options.folder)
        return 0
    prepare(options.folder)
    worst = dict.fromkeys(TILES, 9.0)
    rows = []
    for size in SIZES:
        times = measure(options.folder, size, options.rounds)
        best = min(ms for x, ms in times.items() if not x.startswith("free/"))
        ratios = {label: best / times[f"free/{label}"] for label in TILES}
        worst = {label: min(worst[label], ratio) for label, ratio in ratios.items()}
        rate = 2.0 * size[0] * size[1] * size[2] / best / 1e9
        rows.append({"size": name_of(size), "specialist": round(rate, 1), **ratios})
        said = ", ".join(f"{label} {ratio:.3f}" for label, ratio in ratios.items())
        print(f"{name_of(size):16} specialist {rate:6.1f} TFLOP/s; one text: {said}", flush=True)
    print("worst: " + ", ".join(f"{label} {ratio:.3f}" for label, ratio in worst.items()))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0 if max(worst.values()) >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
