"""The text of one kernel in two dialects differs only where the hardware does."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main
from tile2c.transpile.targets import find
from tile2c.transpile.targets.simt import SimtTarget

SAMPLES = Path(__file__).parents[2] / "samples"
# Pairs with as many lanes: all that may differ is how the dialect spells things.
ALIKE = [
    ("cuda:sm_75", "musa:mp_31"),
    ("cuda:sm_75", "musa:mp_21"),
    ("cuda:sm_80", "ppu:ppu_10"),
    ("ppu:ppu_10", "ppu:ppu_15"),
    ("maca:xcore1000", "corex:ivcore11"),
    ("hip:gfx90a", "dcu:gfx936"),
    ("hip:gfx90a", "hip:gfx942"),
    ("hip:gfx942", "hip:gfx950"),
]
# Pairs with as many lanes whose helpers differ (how a vector is declared, what a shuffle takes): the
# kernels themselves may not.
KERNELS_ALIKE = [("cuda:sm_75", "hip:gfx1100"), ("hip:gfx942", "maca:xcore1000")]


def plain(path: Path, target: SimtTarget) -> list[str]:
    """The lines of a text, with the dialect's words replaced by the language's."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if not line.startswith("//"))
    text = "\n".join(line for line in lines[start:] if not line.startswith("#include"))
    dialect = target.dialect
    words = {spelled: f"<{name}>" for name, spelled in dialect.types.items() if " " not in spelled}
    words |= {spelled: f"<to float {name}>" for name, spelled in dialect.to_float.items()}
    made = {spelled: f"<from float {name}>" for name, spelled in dialect.from_float.items()}
    words = made | words  # HIP makes a float16 with the type's own name
    words.pop("float", None)
    if target.shuffle_mask is not None:
        words[target.shuffle_mask] = "<all lanes>"
    words[target.group] = "<lanes>"
    for word in sorted(words, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(word)}s?(?!\w)", words[word], text)
    # _Float16(x) and float(x) of a 16-bit float are conversions too, however they are spelled
    text = re.sub(r"<(float16|bfloat16)>(?=\()", r"<from float \1>", text)
    text = re.sub(r"<to float \w+>|\bfloat(?=\()", "<to float>", text)
    text = re.sub(rf"\b{target.group}(_\w+)", r"<lanes>\1", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def texts(name: str, pair: tuple[str, str], folder: Path) -> tuple[list[str], list[str]]:
    found = []
    for number, target in enumerate(pair):
        out = folder / str(number)
        assert main([str(SAMPLES / f"{name}.py"), "-o", str(out), "--target", target]) == 0
        described = find(target)
        assert isinstance(described, SimtTarget)
        found.append(plain(out / f"{name}{described.suffix}", described))
    return found[0], found[1]


def differing(first: list[str], second: list[str]) -> list[str]:
    """Lines of either text that the other lacks; how long lines are broken does not count."""
    joined = (re.sub(r"\s+", " ", " ".join(lines)) for lines in (first, second))
    one, other = (text.replace("( ", "(") for text in joined)
    pieces = [re.split(r"(?<=[;{}])\s", text) for text in (one, other)]
    return [line for line in difflib.ndiff(*pieces) if line.startswith(("+ ", "- "))]


@pytest.mark.parametrize("pair", ALIKE, ids="-".join)
@pytest.mark.parametrize("name", ["add", "row_sum", "softmax", "layer_norm", "cumsum"])
def test_without_products_only_words_differ(
    tmp_path: Path, name: str, pair: tuple[str, str]
) -> None:
    assert differing(*texts(name, pair, tmp_path)) == []


@pytest.mark.parametrize("pair", KERNELS_ALIKE, ids="-".join)
@pytest.mark.parametrize("name", ["softmax", "rms_norm", "transpose_scale_bias", "top_k"])
def test_kernels_of_other_families_say_the_same(
    tmp_path: Path, name: str, pair: tuple[str, str]
) -> None:
    kernels = []
    for lines in texts(name, pair, tmp_path):
        first = next(number for number, line in enumerate(lines) if "__global__" in line)
        kernels.append(lines[first:])
    assert differing(*kernels) == []


def between(lines: list[str], first: str, last: str) -> list[str]:
    """The lines from the first that starts so to the one before the next that does."""
    start = next(number for number, line in enumerate(lines) if line.startswith(first))
    stop = next(n for n, line in enumerate(lines) if n > start and line.startswith(last))
    return lines[start:stop]


@pytest.mark.parametrize(
    "pair", [("ppu:ppu_10", "ppu:ppu_15"), ("hip:gfx90a", "dcu:gfx936")], ids="-".join
)
def test_products_differ_in_operands_and_epilogue(tmp_path: Path, pair: tuple[str, str]) -> None:
    """Tiles, copies, stages and barriers are the same; who holds what of a product is the chip's."""
    first, second = texts("gemm", pair, tmp_path)
    parts = [between(lines, "auto load_tiles", "// T.gemm(") for lines in (first, second)]
    assert len(parts[0]) > 20
    assert differing(*parts) == []
    assert differing(first, second) != []
