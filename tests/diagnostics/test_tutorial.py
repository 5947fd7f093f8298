"""The fused gemm as tutorials spelled it: all that is wrong in one run, and what to type instead.

With each help typed where it points, the program is the sample gemm_bias_relu.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import tile2c
from tile2c.transpile.diagnostics import Diagnostic

TUTORIAL = Path(__file__).parent / "tutorial.py"
SAMPLE = Path(__file__).parents[2] / "samples" / "gemm_bias_relu.py"


def problems(path: Path, out: Path) -> list[Diagnostic]:
    with pytest.raises(tile2c.TranspileError) as refused:
        tile2c.build(path, out, "cuda:sm_80", backend="emulate")
    return sorted(refused.value.diagnostics, key=lambda x: (x.span.line, x.span.col))  # type: ignore[union-attr]


def test_all_in_one_run(tmp_path: Path) -> None:
    found = problems(TUTORIAL, tmp_path)
    said = [(problem.severity, problem.code, problem.help) for problem in found]
    bias = "bias[bx * block_N + j]"
    launch = "with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):"
    stored = "C_local[i, j] = T.max(T.load(C_local, i) + T.load(bias, bx * block_N + j), 0)"
    assert said == [
        ("warning", "T2C208", "import tilelang.language as T"),
        ("error", "T2C247", "A: T.Tensor((M, K), dtype)"),
        ("error", "T2C247", "B: T.Tensor((K, N), dtype)"),
        ("error", "T2C247", "bias: T.Tensor((N,), dtype)"),
        ("error", "T2C247", "C: T.Tensor((M, N), dtype)"),
        ("error", "T2C404", launch),
        ("error", "T2C232", stored),
        ("error", "T2C232", "C_local[i, j]"),
        ("warning", "T2C208", bias),
    ]


def test_with_the_helps_typed_it_is_the_sample(tmp_path: Path) -> None:
    fixed = tmp_path / "tutorial.py"
    fixed.write_text(typed(TUTORIAL.read_text(), problems(TUTORIAL, tmp_path / "refused")))
    assert kernel(fixed, tmp_path / "fixed") == kernel(SAMPLE, tmp_path / "sample")


def kernel(path: Path, out: Path) -> str:
    """The generated text without its head, which names the file."""
    tile2c.build(path, out, "cuda:sm_80", backend="emulate")
    (text,) = out.glob("*.cu")
    return text.read_text().partition("#include")[2]


def typed(text: str, found: list[Diagnostic]) -> str:
    """The program with each help in place of what it points at, the last first."""
    for problem in reversed(found):
        assert problem.span is not None and problem.help is not None
        lines = text.splitlines(keepends=True)
        start = sum(map(len, lines[: problem.span.line - 1])) + problem.span.col
        if problem.code == "T2C404":
            text = launched(lines, problem.span.line - 1, problem.help)
            continue
        length = re.match(r"\w+", text[start:])
        assert length is not None
        end = start + length.end()
        new = problem.help
        if text[start:].startswith("T."):
            end = closing(text, start)
            call = ast.parse(text[start:end], mode="eval").body
            assert isinstance(call, ast.Call)
            if len(call.args) == 3:  # what is stored has been mended before
                new = f"{new.partition(' = ')[0]} = {ast.unparse(call.args[2])}"
        elif text[start:].startswith("from"):
            end = text.index("\n", start)
        text = text[:start] + new + text[end:]
    return text


def closing(text: str, start: int) -> int:
    """Behind the parenthesis that closes the first one from `start` on."""
    depth = 0
    for at in range(text.index("(", start), len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at + 1
    raise AssertionError("no call")


def launched(lines: list[str], first: int, launch: str) -> str:
    """The two loops that start at this line as one launch; their body one level further left."""
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    deeper = indent + " " * 8
    body = [line[4:] if line.startswith(deeper) else line for line in lines[first + 2 :]]
    return "".join([*lines[:first], f"{indent}{launch}\n", *body])
