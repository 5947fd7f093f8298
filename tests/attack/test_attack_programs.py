"""Kernels at the edges: nothing to do, too much of it, numbers at the ends of their types."""

from __future__ import annotations

from pathlib import Path

import pytest
from attack_harness import elements, transpiled
from tile2c.transpile.cli.main import main
from tile2c.transpile.stage.defines import DefineError, parse_defines


def store(value: str) -> str:
    return f"for i in T.Parallel(128):\n                B[bx * 128 + i] = {value}"


def text(folder: Path, **parts: str) -> str:
    (kernel,), told = transpiled(folder, elements(**parts))
    assert not told
    return kernel.text


def test_casts_to_types_of_two_words(tmp_path: Path) -> None:
    params = 'A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "{}")'
    assert "= (signed char)A[" in text(tmp_path, params=params.format("int8"))
    assert "= (long long)A[" in text(tmp_path, params=params.format("int64"))


def test_lowest_integers(tmp_path: Path) -> None:
    lowest = {"int32": (2**31, "-2147483647 - 1"), "int64": (2**63, "-9223372036854775807ll - 1")}
    for dtype, (number, spelled) in lowest.items():
        params = f'A: T.Tensor((N,), "{dtype}"), B: T.Tensor((N,), "{dtype}")'
        body = store(f"T.max(A[bx * 128 + i], -{number})")
        assert spelled in text(tmp_path, params=params, body=body)


def test_numbers_that_are_none(tmp_path: Path) -> None:
    found = text(tmp_path, body=store('A[bx * 128 + i] + float("nan")'))
    assert "constexpr float not_a_number" in found


def test_a_kernel_without_arguments(tmp_path: Path) -> None:
    found = text(tmp_path, before="N = 4", params="", body="pass")
    assert found.endswith(" kern() {\n}\n")


@pytest.mark.parametrize("extent", ["0", "-4", "N - 4"])
def test_loops_that_never_run(tmp_path: Path, extent: str) -> None:
    before = 'N = T.dynamic("N")' if "N" not in extent else "N = 4"
    body = f"for i in T.Parallel({extent}):\n                B[i] = A[i]"
    body += f"\n            for i in T.serial({extent}):\n                B[i] = A[i]"
    assert "B[" not in text(tmp_path, before=before, body=body, grid="1").split("{", 1)[1]


@pytest.mark.parametrize(
    ("parts", "code", "line"),
    [
        ({"grid": "2**31"}, "T2C403", 9),
        ({"grid": "1, 65536", "blocks": "(bx, by)"}, "T2C403", 9),
        ({"before": "N = 2**70"}, "T2C237", 0),
        ({"params": 'A: T.Tensor((N,), "int4"), B: T.Tensor((N,), "int8")'}, "T2C557", 8),
        (
            {"body": 's = T.alloc_local((1 << 20,), "float32")\n            s[0] = 1.0'},
            "T2C558",
            10,
        ),
        ({"params": 'A: "T.Tensor(' + "(" * 3000 + '", B: T.Tensor((N,), "int8")'}, "T2C211", 8),
    ],
)
def test_refused_once_and_where_it_is(
    tmp_path: Path, parts: dict[str, str], code: str, line: int
) -> None:
    _, told = transpiled(tmp_path, elements(**parts))
    assert [item[:2] for item in told] == [(code, line)]


def test_values_that_contradict_each_other() -> None:
    parse_defines(("M=64", "M=64", "gemm.M=32"))
    with pytest.raises(DefineError, match="-D M=32 contradicts -D M=64"):
        parse_defines(("M=64", "M=32"))
    with pytest.raises(DefineError, match="there is no value"):
        parse_defines(("M=",))
    with pytest.raises(DefineError) as caught:
        parse_defines(("M=" + "(" * 500,))
    assert len(str(caught.value)) < 250


def test_builtins_are_not_called_undefined(tmp_path: Path) -> None:
    for call in ('open("x")', 'eval("1")', '__import__("os")'):
        _, told = transpiled(tmp_path, elements(before=f"N = 4; x = {call}"))
        assert [item[:2] for item in told] == [("T2C110", 5)] and "read, not run" in told[0][2]


def test_compiled_functions_that_launch_nothing(tmp_path: Path) -> None:
    program = "import tilelang\n\n@tilelang.jit\ndef f(A):\n    return A\n"
    _, told = transpiled(tmp_path, program)
    assert [item[:2] for item in told] == [("T2C404", 4)]


def test_a_wrong_type_is_the_only_problem_told(tmp_path: Path) -> None:
    params = 'A: T.Tensor((N,), "float33"), B: T.Tensor((N // 2,), "float32")'
    _, told = transpiled(tmp_path, elements(params=params))
    assert [item[:2] for item in told] == [("T2C211", 8)]


def test_attempts_that_were_given_up_leave_no_names(tmp_path: Path) -> None:
    """A product too narrow for the matrix unit: its text declares no lane that nothing asks for."""
    program = """
import tilelang.language as T

def make():
    M, N, K = T.dynamic("M, N, K")

    @T.prim_func
    def gemm(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(N, T.ceildiv(M, 128), threads=128) as (bx, by):
            As = T.alloc_shared((128, 32), "float16")
            Bs = T.alloc_shared((32, 1), "float16")
            Cl = T.alloc_fragment((128, 1), "float32")
            T.clear(Cl)
            for ko in T.Pipelined(T.ceildiv(K, 32), num_stages=3):
                T.copy(A[by * 128, ko * 32], As)
                T.copy(B[ko * 32, bx], Bs)
                T.gemm(As, Bs, Cl)
            T.copy(Cl, C[by * 128, bx])

    return gemm
"""
    (kernel,), _ = transpiled(tmp_path, program)
    for name in ("lane", "warp"):
        declared = f"int {name} =" in kernel.text
        assert declared == (kernel.text.count(f"{name} ") + kernel.text.count(f"{name})") > 1)


@pytest.mark.parametrize("count", ["32", "-1"])
def test_shifts_out_of_range(tmp_path: Path, count: str) -> None:
    params = 'A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")'
    _, told = transpiled(
        tmp_path, elements(params=params, body=store(f"A[bx * 128 + i] << {count}"))
    )
    assert [item[:2] for item in told] == [("T2C237", 11)]


def test_all_iterations_store_into_one_element(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A race that the check tells, not an error of the interpreter that runs beside it."""
    source, out = tmp_path / "input.py", tmp_path / "out"
    source.write_text(elements(body="for i in T.Parallel(128):\n                B[0] = A[i]"))
    assert main([str(source), "-o", str(out), "--target", "cuda:sm_80"]) == 0
    run = ["run", str(out), "--source", str(source), "--against", "interpreter"]
    assert main([*run, "--backend", "emulate", "--check", "races"]) == 1
    assert "race in B, byte 0" in capsys.readouterr().err
