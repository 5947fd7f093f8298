"""Names of the generated text: the author's first, then words of the field."""

from __future__ import annotations

# What follows a name that is taken, in this order: words, so that one edit renames nothing else.
_ENDINGS = ("", "_other", "_again", "_more", "_next", "_further", "_extra", "_last")


class Names:
    """The names in use in one kernel."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.frames: list[list[str]] = [[]]

    def enter(self) -> None:
        """A block of the text begins: names given by `local` end with it."""
        self.frames.append([])

    def leave(self) -> None:
        self.taken.difference_update(self.frames.pop())

    def local(self, *wanted: str, depth: int = -1) -> str:
        """A free name for a local of the block at `depth` (the innermost by default)."""
        name = self.fresh(*wanted)
        self.frames[depth].append(name)
        return name

    def unused(self, *wanted: str) -> str:
        """A name like `fresh`, for a loop of a few lines: others may take it, too."""
        name = self.fresh(*wanted)
        self.taken.discard(name)
        return name

    def fresh(self, *wanted: str) -> str:
        """The first of `wanted` that is free, else the last of them with an ending."""
        for name in wanted:
            if name not in self.taken:
                self.taken.add(name)
                return name
        base = wanted[-1]
        for first in _ENDINGS:
            for second in _ENDINGS:
                name = f"{base}{first}{second}"
                if name not in self.taken:
                    self.taken.add(name)
                    return name
        raise AssertionError(f"no free name like {base}")
