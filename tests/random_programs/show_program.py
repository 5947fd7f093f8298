"""`python tests/random_programs/show_program.py SEED [TARGET]`: a failing program, made smaller.

Prints the program, what is wrong with it, and its kernel's folder.
"""

from __future__ import annotations

import copy
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from random_harness import Outcome, program_of, run_programs, target_of
from tile_programs import TileProgram


def outcome_of(seed: int, program: TileProgram, target: str, folder: Path) -> Outcome:
    (found,) = run_programs([(seed, program)], target, folder)
    return found


def smaller(program: TileProgram) -> Iterator[TileProgram]:
    """The program without one of its statements, later ones first."""
    for number, statements in enumerate(program.launches):
        for index in reversed(range(len(statements))):
            candidate = copy.copy(program)
            candidate.launches = [list(launch) for launch in program.launches]
            del candidate.launches[number][index]
            yield candidate


def main() -> None:
    seed = int(sys.argv[1])
    target = sys.argv[2] if len(sys.argv) > 2 else target_of(seed)
    program = program_of(seed, target)
    folder = Path(tempfile.mkdtemp(prefix="tile-program-"))
    found = outcome_of(seed, program, target, folder)
    shrinking = found.kind not in ("ok", "refused")
    while shrinking:
        shrinking = False
        for candidate in smaller(program):
            other = outcome_of(seed, candidate, target, folder)
            if (
                other.kind == found.kind
                and other.detail.split(" ")[:1] == found.detail.split(" ")[:1]
            ):
                program, found, shrinking = candidate, other, True
                break
    print(found)
    print(f"in {folder}")


if __name__ == "__main__":
    main()
