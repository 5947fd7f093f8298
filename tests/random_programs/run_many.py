"""Thousands of random programs over several processes, within a time limit, and what became of them.

    python tests/random_programs/run_many.py                      10,000 programs, all cores
    python tests/random_programs/run_many.py --programs 20000 --jobs 16 --limit 540
    python tests/random_programs/run_many.py --shards 4 --shard 1  every fourth batch, from the second on
    python tests/random_programs/run_many.py --target hip:gfx942 --first 5000 --programs 500

A seed is a program and, by its last two digits, a target (`target_of`). Each batch of seeds is a
process of its own, so a crash or a hang costs no more than one batch: its programs are then tried
one by one.
The last line counts; `--report` writes the same as JSON. The exit status is 1 when anything failed.
Programs that fail are shown with their seed: `show_program.py SEED` makes them again, smaller.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from random_harness import WITHOUT_THREADS, Outcome, run_batch, target_of, transpiled
from tile_programs import made

BATCH = 40  # programs of one compilation
PATIENCE = 240.0  # seconds for one batch
# What targets with threads may refuse: a type that they lack, tiles that are too large.
LACKS = ("T2C557", "T2C401", "T2C558")
SHOWN = 12  # failures whose text is printed; the report has all


@dataclass(frozen=True, slots=True)
class Batch:
    """Seeds of one target, compiled together."""

    target: str
    seeds: tuple[int, ...]


@dataclass(slots=True)
class _Running:
    batch: Batch
    process: BaseProcess
    result: Connection
    since: float


@dataclass(slots=True)
class Tally:
    """Outcomes so far."""

    kinds: Counter[str] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    told: dict[str, str] = field(default_factory=dict)  # of each kind of refusal, the first
    failed: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.kinds[outcome.kind] += 1
        self.targets[outcome.target] += 1
        if outcome.kind == "refused":
            code = outcome.detail.partition(" ")[0]
            key = f"{outcome.target} {code}"
            self.refused[key] += 1
            self.told.setdefault(key, f"seed {outcome.seed}: {outcome.detail.rpartition('): ')[2]}")
            if code not in LACKS and not outcome.target.startswith(WITHOUT_THREADS):
                self.failed.append(outcome)
        elif outcome.kind != "ok":
            self.failed.append(outcome)

    @property
    def tried(self) -> int:
        return self.kinds.total()


def batches(seeds: Sequence[int], target: str | None, size: int = BATCH) -> list[Batch]:
    """Seeds of one target together, in batches that begin with the lowest seeds."""
    by_target: dict[str, list[int]] = {}
    for seed in seeds:
        by_target.setdefault(target or target_of(seed), []).append(seed)
    made = [
        Batch(name, tuple(members[start : start + size]))
        for name, members in by_target.items()
        for start in range(0, len(members), size)
    ]
    return sorted(made, key=lambda batch: batch.seeds[0])


def _work(batch: Batch, result: Connection) -> None:
    with tempfile.TemporaryDirectory(prefix="tile2c-random-") as folder:
        result.send(run_batch(batch.seeds, batch.target, Path(folder)))
    result.close()


def _singles(batch: Batch, why: str) -> list[Batch] | Outcome:
    """A batch whose process ended badly: its programs one by one, or the one that did it."""
    if len(batch.seeds) > 1:
        return [Batch(batch.target, (seed,)) for seed in batch.seeds]
    return Outcome(batch.seeds[0], batch.target, why, f"the process: {why}", "")


def run(
    waiting: list[Batch], jobs: int, limit: float, patience: float = PATIENCE
) -> Iterator[Outcome]:
    """Outcomes as they come; what has not begun after `limit` seconds is left out."""
    context = get_context("fork")
    started = time.monotonic()
    running: list[_Running] = []
    while running or waiting:
        elapsed = time.monotonic() - started
        if elapsed > limit:
            waiting = []
        while waiting and len(running) < jobs:
            batch = waiting.pop(0)
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(batch, there))
            process.start()
            there.close()
            running.append(_Running(batch, process, here, time.monotonic()))
        done = [item for item in running if item.result.poll() or not item.process.is_alive()]
        late = [i for i in running if i not in done and time.monotonic() - i.since > patience]
        if elapsed > limit + patience / 4:
            late = [item for item in running if item not in done]
        for item in (*done, *late):
            running.remove(item)
            outcomes = _outcomes(item)
            if outcomes is not None:
                yield from outcomes
                continue
            found = _singles(item.batch, "hangs" if item in late else "dies")
            if isinstance(found, Outcome):
                yield found
            elif elapsed <= limit:
                waiting = found + waiting
        time.sleep(0.02)


def _outcomes(item: _Running) -> list[Outcome] | None:
    """What the process has sent; it is ended if it still runs."""
    outcomes: list[Outcome] | None = None
    try:
        if item.result.poll():
            outcomes = item.result.recv()
            item.process.join()
    except (EOFError, OSError):
        pass
    if item.process.is_alive():
        item.process.kill()
        item.process.join()
    item.result.close()
    return outcomes


def report(tally: Tally, seconds: float, planned: int) -> str:
    """The summary, its last line the one that counts."""
    lines = [f"  {name}: {count}" for name, count in sorted(tally.targets.items())]
    lines += [
        f"  refused: {count} × {name}, as {tally.told[name]}"
        for name, count in sorted(tally.refused.items())
    ]
    lines += [
        f"  failed: seed {o.seed}, {o.target}: {o.kind}: {o.detail.strip().splitlines()[-1][:160]}"
        for o in tally.failed[:200]
    ]
    lines.append(
        f"{tally.tried} of {planned} programs tried in {seconds:.0f} s: {tally.kinds['ok']} compared "
        f"and equal, {tally.kinds['refused']} refused at a place, {len(tally.failed)} failed"
    )
    return "\n".join(lines)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the lowest seed")
    parser.add_argument("--target", help="one target for all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=36_000.0, help="seconds")
    parser.add_argument("--batch", type=int, default=BATCH, help="programs of one compilation")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--shard", type=int, default=0)
    parser.add_argument("--report", type=Path, help="a file for the outcome as JSON")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    seeds = range(options.first, options.first + options.programs)
    mine = batches(seeds, options.target, options.batch)[options.shard :: options.shards]
    planned = sum(len(batch.seeds) for batch in mine)
    tally, started, told = Tally(), time.monotonic(), 0
    with tempfile.TemporaryDirectory(
        prefix="tile2c-random-"
    ) as folder:  # imports, before processes are
        for target in {batch.target for batch in mine}:
            transpiled(0, made(Random(0), "k0"), target, Path(folder))
    for outcome in run(mine, options.jobs, options.limit):
        tally.add(outcome)
        if tally.failed and tally.failed[-1] is outcome and len(tally.failed) <= SHOWN:
            print(f"\n{outcome}\n", flush=True)
        if tally.tried // 500 > told:
            told = tally.tried // 500
            print(f"{tally.tried} after {time.monotonic() - started:.0f} s", flush=True)
    seconds = time.monotonic() - started
    print(report(tally, seconds, planned))
    if options.report:
        options.report.write_text(json.dumps(_record(tally, seconds, planned), indent=1))
    return 1 if tally.failed else 0


def _record(tally: Tally, seconds: float, planned: int) -> dict[str, Any]:
    return {
        "planned": planned,
        "tried": tally.tried,
        "seconds": round(seconds, 1),
        "outcomes": dict(tally.kinds),
        "targets": dict(tally.targets),
        "refused": dict(tally.refused),
        "told": tally.told,
        "failed": [asdict(outcome) for outcome in tally.failed],
    }


if __name__ == "__main__":
    sys.exit(main())
