"""The table of docs/samples-on-targets.md: every sample on every target, at the sizes of sample_sizes.py.

    python tests/dialects/sample_table.py                      all cells, told as they come
    python tests/dialects/sample_table.py --write              and the page written anew
    python tests/dialects/sample_table.py --target hip:gfx942 --sample gemm --write
    python tests/dialects/sample_table.py --only emulated --jobs 16 --limit 300

A cell that is not computed, or only in part, keeps what the page says of the rest. The exit status is 1
if a text does not compile, or does not mean its program, or a page that is not written anew differs.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from sample_cells import NAMES, Cell, cell
from tile2c.transpile.targets import all_targets

PAGE = Path(__file__).parents[2] / "docs" / "samples-on-targets.md"
HEAD = """\
# Samples on targets

Written by `python tests/dialects/sample_table.py --write`, which makes every text at a small size
with tails, compiles it and runs it; CI does some cells anew and compares.

- **c**: the text compiles. With what is said above each table; without it there is no compiler to try.
- **e**: run by the emulator with races and memory checked, it finds nothing, and the outputs are those of the
  interpreter of the tile program in float64.
- A code (see [errors.md](errors.md)) stands where the sample is refused: T2C557, T2C522 and T2C540 for
  8-bit floats that the chip does not have, T2C590 for barriers and copies that only Hopper has, T2C538
  for parts of a row that would have to start at multiples of 32 bytes.

Sizes and choices are those of tests/dialects/sample_sizes.py: odd, with tails, and small. A sample that is
refused at them may run with others (conv2d on Ascend C: with channels in multiples of 32 bytes).
"""
Table = dict[tuple[str, str], Cell]
FAILED = ("C?", "E?")


def targets() -> list[str]:
    return [target.name for target in all_targets()]


def page(table: Table) -> str:
    """The page's text."""
    parts = [HEAD]
    families: dict[str, list[str]] = {}
    for name in targets():
        families.setdefault(name.partition(":")[0], []).append(name)
    for family, names in families.items():
        parts.append(f"## {family}\n\n{_facts(names)}\n{_grid(names, table)}")
    return "\n".join(parts)


def _facts(names: Sequence[str]) -> str:
    known = {target.name: target for target in all_targets()}
    lines: dict[str, list[str]] = {}
    for name in names:
        target = known[name]
        fact = f"{target.proven}; compiled: {target.compiled or 'no compiler to try'}"
        lines.setdefault(fact, []).append(name.partition(":")[2])
    return "".join(f"- {', '.join(archs)}: {fact}\n" for fact, archs in lines.items())


def _grid(names: Sequence[str], table: Table) -> str:
    heads = [name.partition(":")[2] for name in names]
    lines = [f"| | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
    for sample in NAMES:
        cells = [str(table.get((sample, name), "")) for name in names]
        lines.append(f"| {sample} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def parsed(text: str) -> Table:
    """The cells that a page tells of."""
    table: Table = {}
    family, archs = "", [""]
    for line in text.splitlines():
        if line.startswith("## "):
            family = line[3:].strip()
        elif line.startswith("| | "):
            archs = [part.strip() for part in line.split("|")[2:-1]]
        elif line.startswith("| ") and family:
            sample, *cells = [part.strip() for part in line.split("|")[1:-1]]
            if not sample.startswith("---"):
                for arch, word in zip(archs, cells, strict=True):
                    table[sample, f"{family}:{arch}"] = _cell(word)
    return table


def _cell(word: str) -> Cell:
    if re.fullmatch(r"T2C\d+", word):
        return Cell(refused=word)
    return Cell(
        compiled={"c": True, "C?": False}.get(word.replace("E?", "").replace("e", "")),
        equal=True if "e" in word else False if "E?" in word else None,
    )


def known() -> Table:
    return parsed(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}


def _job(job: tuple[str, str, bool, bool]) -> tuple[str, str, Cell]:
    sample, target, emulated, compiled = job
    return sample, target, cell(sample, target, emulated=emulated, compiled=compiled)


def computed(
    chosen: Sequence[tuple[str, str]], jobs: int, limit: float, only: str | None = None
) -> Iterator[tuple[str, str, Cell]]:
    """Cells as they come, until the time is up."""
    work = [(*pair, only != "compiled", only != "emulated") for pair in chosen]
    started = time.monotonic()
    if jobs == 1:
        for job in work:
            yield _job(job)
            if time.monotonic() - started > limit:
                return
        return
    with get_context("fork").Pool(jobs) as pool:
        for found in pool.imap_unordered(_job, work):
            yield found
            if time.monotonic() - started > limit:
                return


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sample", action="append", choices=NAMES)
    parser.add_argument("--target", action="append", choices=targets())
    parser.add_argument("--only", choices=("compiled", "emulated"))
    parser.add_argument(
        "--missing", action="store_true", help="cells of which the page says nothing"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=36_000.0, help="seconds")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    table = known()
    chosen = [
        (sample, target)
        for target in options.target or targets()
        for sample in options.sample or NAMES
        if not options.missing or _lacks(table.get((sample, target), Cell()), options.only)
    ]
    failed, differs = 0, 0
    for sample, target, found in computed(chosen, options.jobs, options.limit, options.only):
        now = found.joined(table.get((sample, target), Cell())) if not found.refused else found
        failed += any(word in str(found) for word in FAILED)
        differs += str(now) != str(table.get((sample, target), ""))
        table[sample, target] = now
        print(f"{sample} {target}: {found} {found.told}", flush=True)
    if options.write:
        PAGE.write_text(page(table), encoding="utf-8")
    elif differs:
        print(f"the page differs in {differs} cells: --write writes it anew")
    return 1 if failed or (differs and not options.write) else 0


def _lacks(found: Cell, only: str | None) -> bool:
    if found.refused:
        return False
    if only is None:
        return found.compiled is None or found.equal is None
    return (found.compiled if only == "compiled" else found.equal) is None


if __name__ == "__main__":
    sys.exit(main())
