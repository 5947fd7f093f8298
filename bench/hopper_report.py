"""The section of docs/performance.md that bench/hopper.py writes from its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- hopper: written by bench/hopper.py -->", "<!-- end of hopper -->"
HEAD = """## Hopper beside the libraries

`bench/hopper.py`: the samples, unchanged but for tile sizes, for `cuda:sm_90a`, beside torch (cuBLAS,
cuDNN, `torch.compile`), Triton and TileLang in one process, contenders taking turns. A ratio is the best
rival's median time over ours; the spread is slowest less fastest round, in parts of the median.
Row operations also meet their goal with 0.97 of a copy of as many bytes.
"""


def write(document: Path, files: Sequence[Path]) -> int:
    """Puts the section in the place of the one that is there, or at the end. Later rows win."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for file in files:
        for line in file.read_text().splitlines():
            row = json.loads(line)
            rows[row["case"], row["way"]] = row
    text = document.read_text()
    section = f"{BEGIN}\n{section_of(list(rows.values()))}\n{END}"
    if BEGIN in text:
        before, _, rest = text.partition(BEGIN)
        text = before + section + rest.partition(END)[2]
    else:
        text = text.rstrip("\n") + "\n\n" + section + "\n"
    document.write_text(text)
    return 0


def section_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Head, versions and the table."""
    versions = rows[0]["versions"] if rows else {}
    words = ", ".join(f"{name} {text}" for name, text in versions.items() if name != "device")
    lines = [HEAD, f"One {versions.get('device', 'device')}; {words}.", ""]
    lines.append(
        "| operation | | ours | spread | best rival | it | spread | ratio | goal | tile sizes |"
    )
    lines.append("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    return "\n".join([*lines, *(_line(row) for row in rows)])


def _line(row: Mapping[str, Any]) -> str:
    ours, best = row["contenders"].get(row["ours"]), row["contenders"].get(row["best"])
    if ours is None or best is None:
        return f"| {row['title']} | {row['way']} | not there | | | | | | {row['goal']:.2f} | |"
    ratio = f"{row['ratio']:.3f}"
    ratio = f"**{ratio}**" if row["met"] else ratio
    if row["of_copy"]:
        ratio += f", {row['of_copy']:.3f} of a copy"
    tiles = row["ours"].removeprefix("tile2c").strip()
    mine, theirs = (f"{x['rate']:.0f} {row['unit']}" for x in (ours, best))
    spreads = [f"{x['spread'] * 100:.1f} %" for x in (ours, best)]
    name = row["best"].split(" block")[0].strip()
    return (
        f"| {row['title']} | {row['way']} | {mine} | {spreads[0]} | {name} | {theirs} | {spreads[1]} "
        f"| {ratio} | {row['goal']:.2f} | {tiles} |"
    )
