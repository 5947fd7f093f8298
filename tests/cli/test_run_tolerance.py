"""Default sizes and tolerances of `tile2c run` as they follow from the tile program."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tile2c.transpile import pipeline
from tile2c.transpile.cli.generate import parsed_defines
from tile2c.transpile.cli.main import main
from tile2c.transpile.cli.run_compare import compare
from tile2c.transpile.cli.run_loops import Step, loop_steps
from tile2c.transpile.cli.run_roundings import Roundings, roundings, with_products_in
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir.forms import Function

HEAD = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, K):
    @T.prim_func
    def main({parameters}):
        with T.Kernel(T.ceildiv(M, 32), threads=64) as bx:
"""
MATRICES = 'X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, K), "{}")'

LOG_SUM = """
            x = T.alloc_fragment((32, 48), "float32")
            most = T.alloc_fragment((32,), "float32")
            old = T.alloc_fragment((32,), "float32")
            total = T.alloc_fragment((32,), "float32")
            part = T.alloc_fragment((32,), "float32")
            T.fill(most, -T.infinity("float32"))
            T.clear(total)
            for k in T.serial(T.ceildiv(N, 48)):
                T.copy(X[bx * 32, k * 48], x)
                for i, j in T.Parallel(32, 48):
                    x[i, j] = T.if_then_else(k * 48 + j < N, x[i, j], -T.infinity("float32"))
                T.copy(most, old)
                T.reduce_max(x, most, dim=1, clear=False)
                for i, j in T.Parallel(32, 48):
                    x[i, j] = T.exp(x[i, j] - most[i])
                T.reduce_sum(x, part, dim=1)
                for i in T.Parallel(32):
                    total[i] = total[i] * T.exp(old[i] - most[i]) + part[i]
            for i in T.Parallel(32):
                L[bx * 32 + i] = T.log(total[i]) + most[i]
"""


def program(parameters: str, body: str) -> str:
    return HEAD.format(parameters=parameters) + body.lstrip("\n") + "\n    return main\n"


def function_of(text: str, folder: Path) -> Function:
    path = folder / "kernel.py"
    path.write_text(text)
    request = pipeline.Request(inputs=(path,), targets=("cuda:sm_80",), defines=parsed_defines(()))
    diagnostics = Diagnostics()
    found = [function for _, function in pipeline.functions(request, diagnostics)]
    assert found, diagnostics.items
    return found[0]


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for k in T.serial(T.ceildiv(N, 192)):", {"N": (Step(192),)}),
        ("for k in T.serial((N + 191) // 192):", {"N": (Step(192),)}),
        ("for k in T.serial(N // 16):", {"N": (Step(16),)}),
        ("for k in T.serial(0, N, 64):", {"N": (Step(64),)}),
        ("for k in T.serial(T.ceildiv(T.ceildiv(N, 4), 16)):", {"N": (Step(64),)}),
        ("for k in T.serial(T.ceildiv(N * 4, 64)):", {"N": (Step(16),)}),
        (
            "for k in T.serial(T.min(T.ceildiv(N, 64), T.ceildiv(M, 32))):",
            {"N": (Step(64),), "M": (Step(32),)},
        ),
        ("for k in T.Pipelined(T.ceildiv(N, 32), num_stages=4):", {"N": (Step(32, 5),)}),
        ("for k in T.serial(N):", {}),
        ("for k in T.serial(3):", {}),
    ],
)
def test_steps_of_loops(loop: str, expected: dict[str, tuple[Step, ...]], tmp_path: Path) -> None:
    body = f"""
            s = T.alloc_shared((32, 16), "float32")
            {loop}
                T.copy(X[bx * 32, k * 16], s)
                T.copy(s, Y[bx * 32, k * 16])
"""
    text = program(MATRICES.format("float32"), body)
    assert loop_steps(function_of(text, tmp_path)) == expected


def test_a_wrong_recurrence_fails_at_default_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    parameters = 'X: T.Tensor((M, N), "float32"), L: T.Tensor((M,), "float32")'
    Path("kernel.py").write_text(program(parameters, LOG_SUM).replace("M, N, K", "M, N"))
    assert main(["kernel.py", "-o", "out"]) == 0
    command = ["run", "out", "--backend", "emulate", "--against", "interpreter"]
    assert main(command) == 0
    assert "N = 112" in capsys.readouterr().out
    text = Path("out/kernel.cu")
    lines = text.read_text().splitlines(keepends=True)
    kept = [line for line in lines if "*= expf(" not in line]
    assert len(kept) < len(lines)
    text.write_text("".join(kept))
    assert main(command) == 1


TILE = """
            x = T.alloc_fragment((32, 16), "float32")
            h = T.alloc_fragment((32, 16), "float16")
            s = T.alloc_shared((32, 16), "{dtype}")
            T.copy(X[bx * 32, 0], x)
            {statement}
            T.copy(s, Y[bx * 32, 0])
"""


@pytest.mark.parametrize(
    ("dtype", "statement", "expected"),
    [
        ("float32", "T.copy(x, s)", Roundings()),
        ("bfloat16", "T.copy(x, s)", Roundings("bfloat16")),
        (
            "float32",
            "T.copy(x, h)\n            T.copy(h, s)",
            Roundings("float16"),
        ),
        (
            "float32",
            "T.copy(x, h)\n            for i, j in T.Parallel(32, 16):\n"
            "                s[i, j] = x[i, j] * h[i, j]",
            Roundings("float32", "float16"),
        ),
        (
            "bfloat16",
            "T.copy(x, h)\n            for i, j in T.Parallel(32, 16):\n"
            "                s[i, j] = T.max(h[i, j], h[i, 0]) * x[i, j]",
            Roundings("bfloat16", "float16"),
        ),
    ],
)
def test_roundings(dtype: str, statement: str, expected: Roundings, tmp_path: Path) -> None:
    body = TILE.format(dtype=dtype, statement=statement)
    found = roundings(function_of(program(MATRICES.format(dtype), body), tmp_path))
    assert found["Y"] == expected


def test_tolerances_follow_from_types() -> None:
    want = np.array([1.0, -1.0, 1.0, -1.0])
    last = Roundings("bfloat16")

    def limits(dtype: str, kind: type, came: Roundings | None) -> tuple[float, float, str | None]:
        found = compare("C", dtype, want.astype(kind), want, None, None, came)
        assert not found.wrong
        return found.rtol, found.atol, found.set_by

    assert limits("float32", np.float32, Roundings()) == (1e-4, 1e-4, "float32")
    assert limits("bfloat16", ml_dtypes.bfloat16, last) == (
        2**-6,
        pytest.approx(1e-4),
        "bfloat16",
    )
    assert limits("float32", np.float32, Roundings(None, "float16")) == (2**-9, 2**-8, "float16")
    assert limits("float32", np.float32, with_products_in("tfloat32", None))[2] == "tfloat32"
    fp8 = ml_dtypes.float8_e4m3fn
    assert limits("float8_e4m3fn", fp8, Roundings("float8_e4m3fn"))[:2] == (
        1 / 8,
        pytest.approx(1e-4 + 2**-9),
    )
    assert limits("float64", np.float64, Roundings())[::2] == (1e-10, "float64")
    assert limits("float64", np.float64, Roundings(None, "float32"))[::2] == (1e-4, "float32")
    assert limits("bfloat16", ml_dtypes.bfloat16, None)[1] == pytest.approx(2**-5)


def test_ten_steps_of_bfloat16_are_wrong() -> None:
    want = np.array([1.0, 100.0, -100.0])
    got = np.array([1.0 + 10 * 2**-7, 100.0, -100.0]).astype(ml_dtypes.bfloat16)
    assert compare("C", "bfloat16", got, want, None, None, Roundings("bfloat16")).wrong == 1
