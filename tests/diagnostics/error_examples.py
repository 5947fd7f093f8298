"""The examples of docs/errors.md: of each code a program that is wrong and one that is right.

They stand in examples/*.txt: the code, `@ option=value` lines, then lines of the wrong program with `-` in
front and lines of the right one with `+`. With `!` before the sign a program stands for itself; others are
statements of the kernel FRAME.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.pipeline import Request, generate
from tile2c.transpile.stage import parse_defines

HERE = Path(__file__).parent / "examples"
HEAD = "import tilelang\nimport tilelang.language as T\n\n"
FRAME = """\
@T.prim_func
def main(
    A: T.Tensor((64, 64), "float16"),
    B: T.Tensor((64, 64), "float16"),
    O: T.Tensor((64, 64), "float32"),
    V: T.Tensor((64,), "float32"),
    I: T.Tensor((64,), "int32"),
):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((64, 64), "float16")
        f = T.alloc_fragment((64, 64), "float32")
        g = T.alloc_fragment((64,), "float32")
"""
DEFAULT_TARGET = "cuda:sm_80"


@dataclass(slots=True)
class Example:
    """One code's two programs as the page shows them; `options` has target and defines."""

    code: str
    whole: bool = False
    wrong: str = ""
    right: str = ""
    options: dict[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        return self.options.get("target", DEFAULT_TARGET)


def examples() -> Iterator[Example]:
    """Every example, in the order of the files."""
    for path in sorted(HERE.glob("*.txt")):
        yield from _of(path.read_text(encoding="utf-8").splitlines())


def _of(lines: list[str]) -> Iterator[Example]:
    example: Example | None = None
    for line in lines:
        if line.startswith("T2C"):
            if example is not None:
                yield example
            example = Example(line.strip())
            continue
        assert example is not None, line
        if line.startswith("@ "):
            name, _, value = line[2:].partition("=")
            example.options[name] = value
            continue
        if line.startswith("!"):
            example.whole, line = True, line[1:]
        sign, text = line[:1], line[2:]
        assert sign in ("-", "+"), line
        if sign == "-":
            example.wrong += text + "\n"
        else:
            example.right += text + "\n"
    if example is not None:
        yield example


def program(text: str, whole: bool) -> str:
    """The complete file of an example."""
    return HEAD + (text if whole else FRAME + indent(text, " " * 8))


def told(text: str, example: Example, folder: Path) -> list[tuple[str, str, str]]:
    """(code, severity, message) of every diagnostic."""
    path = folder / "input.py"
    path.write_text(program(text, example.whole), encoding="utf-8")
    diagnostics = Diagnostics()
    defines = tuple(example.options.get("define", "").split())
    request = Request(inputs=(path,), targets=(example.target,), defines=parse_defines(defines))
    generate(request, diagnostics)
    return [(item.code, str(item.severity.value), item.message) for item in diagnostics.items]
