"""Rules that every generated text keeps, whatever the kernel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from look_texts import OTHER, WHOLE, Case
from tile2c.transpile.render.finish import wrap

ROOT = Path(__file__).parents[2]
DECLARED = re.compile(
    r"^(?:static .*?|struct alignas\(.*\) |struct |typedef .* )\b(\w+)(?:\(| \{| _)"
)
ORDERS = re.compile(
    r"^\s*(?:if \(.*\) )?"
    r"(?:__sync\w*|copies_wait|named_barrier\w*|wait\w*|order|PipeBarrier|SyncAll"
    r"|products_wait|fence\w*|mbarrier\w*)(?:<.*>)?\(.*\);"
)


@pytest.fixture(params=[*WHOLE, *OTHER], ids=str)
def text(request: pytest.FixtureRequest, text_of: Callable[[Case], str]) -> str:
    return text_of(request.param)


@pytest.fixture
def entry(text: str) -> list[str]:
    """The lines behind the helpers: bodies and entry points."""
    lines = text.split("\n")
    starts = [n for n, line in enumerate(lines) if "_block(" in line or "_global__ " in line]
    return lines[starts[0] :]


def test_lines(text: str) -> None:
    assert text.endswith("}\n") and not text.endswith("\n\n")
    assert "\n\n\n" not in text
    for line in text.split("\n"):
        assert len(line) <= 100, line
        assert "\t" not in line and line == line.rstrip(), line
        assert line.isascii(), line


def test_formatter_changes_nothing(text: str, tmp_path: Path) -> None:
    command = shutil.which("clang-format", path=Path(sys.executable).parent) or shutil.which(
        "clang-format"
    )
    assert command, "clang-format is part of the test extra"
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    style = f"--style=file:{ROOT / '.clang-format'}"
    run = [command, style, "--dry-run", "-Werror", str(path)]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_helper_and_constant_is_used(text: str) -> None:
    code = "\n".join(line.split("//")[0] for line in text.split("\n"))
    names = re.findall(r"^constexpr [\w:]+ (\w+) =", code, re.MULTILINE)
    names += re.findall(r"^#define (\w+)", code, re.MULTILINE)
    names += re.findall(r"^struct (?:alignas\(.*\) )?(\w+) \{", code, re.MULTILINE)
    names += re.findall(r"^typedef .* (\w+) __attribute__", code, re.MULTILINE)
    names += re.findall(r"^static [^;={]*?\b(\w+)\(", code, re.MULTILINE)
    assert names or "constexpr" not in code
    for name in set(names):
        declared = names.count(name)
        used = len(re.findall(rf"\b{name}\b", code))
        assert used > declared, f"{name} is declared and never used"


def test_helpers_are_static(text: str) -> None:
    code = [line for line in text.split("\n") if re.match(r"[\w].*\)? \{", line)]
    for line in code:
        assert line.startswith(("static ", "struct ", 'extern "C" ', "    ", "template")), line


def test_every_helper_says_what_it_does(text: str) -> None:
    """A comment stands above each helper function, before its `template` line."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("static ") and "_block(" not in line:
            above = lines[number - 1]
            if above.startswith("template"):
                above = lines[number - 2]
            assert above.startswith("//"), line


def test_every_barrier_and_wait_has_a_reason(entry: list[str]) -> None:
    for number, line in enumerate(entry):
        if ORDERS.match(line):
            above = entry[number - 1].strip()
            assert "  // " in line or above.startswith("//"), f"no reason: {line.strip()}"


def test_every_guard_has_a_reason(entry: list[str]) -> None:
    for number, line in enumerate(entry):
        if re.match(r"\s*if \(.*\) (?:continue|return|break);", line):
            above = entry[number - 1].strip()
            assert "  // " in line or above.startswith("//"), f"no reason: {line.strip()}"


def test_statements_are_quoted_without_numbers_of_lines(text: str) -> None:
    assert re.search(r"^\s*// (?:T\.|for |C\[)", text, re.MULTILINE)
    assert not re.search(r"\.py:\d", text)


@pytest.mark.parametrize(
    "statement",
    [
        "atomicAdd(&dQ[(((bz * 128 + (k * block_N + i) / 8) * 16 + bx) * 8 + j / 8) * 64 + "
        "4 * ((k * block_N + i) % 8) + j % 8 / 2], dq[m][n][h * 2 + v]);",
        "y[r] = __bfloat162float(row >= 0 && row < M && column >= 0 && column < N ? "
        "X[size_t(row) * N + column] : __nv_bfloat16(0.f));",
        "load_whole_vector(V_part, &V[bb * 1048576 + (bs * block_S + i) * 1024 + bh * 128 + "
        "i_v * block_DV + j], valid);",
        "sums[size_t(bg) * (M_max * ((N + group - 1) / group)) + size_t(row * blk_m + i) * "
        "((N + group - 1) / group) + group_of_row] = y_s_local;",
    ],
)
def test_a_formula_longer_than_a_line_is_broken(statement: str) -> None:
    """Not one line is too long, and the words stay as they are."""
    lines = wrap(statement, 84).split("\n")
    assert max(map(len, lines)) <= 84
    assert "".join(statement.split()) == "".join("".join(lines).split())
