"""What is said about wrong programs, to the letter; and that many problems are found in one go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tile2c.transpile.cli.main import main

Make = Callable[..., Any]


def test_many_in_one_go(kernel: Make) -> None:
    result = kernel(
        """
        T.copyy(A, B)
        x = A[0]
        y = x + 1
        B[0, 0] = y
        B[0, 0] = min(A[0, 0], 1)
        B[0, 0] = A[0, 0] ** 2
        B[0, 0] = A[0, 0] // 0
        B[0, 0] = missing
        """
    )
    assert result.codes == ["T2C202", "T2C232", "T2C241", "T2C235", "T2C238", "T2C111"]
    assert result.messages[0] == (
        "program.py:14:9: error[T2C202]: copyy is not a name of the tile language\n"
        "        T.copyy(A, B)\n"
        "        ^^^^^^^\n"
        "   = help: did you mean T.copy?"
    )
    assert result.messages[1] == (
        "program.py:15:13: error[T2C232]: A has 2 dimensions (M, N) but gets 1 index\n"
        "        x = A[0]\n"
        "            ^^^^\n"
        "   = help: A[i, j]"
    )
    assert result.messages[2].endswith("   = help: T.min(A[0, 0], 1)")
    assert result.messages[3].endswith("   = help: T.pow(A[0, 0], 2)")


def test_untyped_parameters_are_all_named(program: Make) -> None:
    result = program(
        """
        import tilelang as tl

        @tl.jit
        def build():
            @T.prim_func
            def main(A, B, n: T.int32):
                with T.Kernel(1) as bx:
                    A[0] = B[0]
            return main
        """
    )
    assert result.codes == ["T2C247", "T2C247"]
    assert result.messages[1] == (
        "program.py:9:17: error[T2C247]: parameter B of main has no type\n"
        "    def main(A, B, n: T.int32):\n"
        "                ^\n"
        "   = help: B: T.Tensor((N,), dtype)"
    )


def test_names_end_with_their_region(kernel: Make) -> None:
    result = kernel(
        """
        for i in T.serial(4):
            t = A[i, 0]
        B[0, 0] = t
        B[i, 0] = 0
        """
    )
    assert result.codes == ["T2C239", "T2C239"]
    assert result.messages[0] == (
        "program.py:16:19: error[T2C239]: t is bound inside the `for` at line 14 and cannot be "
        "used after it\n"
        "        B[0, 0] = t\n"
        "                  ^\n"
        "   = note: it is bound here: program.py:15\n"
        "   = help: declare it before: t = T.alloc_var(T.float32)"
    )


def test_copies_that_do_not_fit(kernel: Make) -> None:
    result = kernel(
        """
        s = T.alloc_shared((64, 32), "float32")
        q = T.alloc_shared((32, 64), "float32")
        d = T.alloc_shared((2, 64, 32), "float32")
        T.copy(s, q)
        T.copy(A[0:128, 0:32], s)
        T.copy(A[0, 0], d)
        T.gemm(A[0, 0], s, q)
        T.reduce_sum(s, q, dim=3)
        """
    )
    assert result.codes == ["T2C301", "T2C301", "T2C302", "T2C303", "T2C320"]
    assert "error[T2C301]: A gives [128, 32] but s takes [64, 32]" in result.messages[1]
    assert "A is addressed by 2 indices, but the other side" in result.messages[2]


def test_launches(program: Make) -> None:
    result = program(
        """
        @T.prim_func
        def loops(A: T.Tensor((8,), "float32")):
            for i in T.serial(8):
                A[i] = 1

        @T.prim_func
        def wide(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, 2, threads=2048) as bx:
                A[0] = 1

        @T.prim_func
        def three(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, 2, threads=128) as (bx, by, bz):
                A[bx] = 1
        """
    )
    assert result.codes == ["T2C404", "T2C402", "T2C405"]
    assert "= help: with T.Kernel(" in result.messages[0]


def test_what_cannot_be_known(program: Make) -> None:
    result = program(
        """
        import torch
        SM = torch.cuda.get_device_properties(0).multi_processor_count

        @T.prim_func
        def persist(A: T.Tensor((8,), "float32")):
            with T.Kernel(SM) as bx:
                A[bx] = 1
        """
    )
    (message,) = result.messages
    assert "error[T2C110]: SM cannot be evaluated without running the program" in message
    assert "= note: it comes from here: program.py:5" in message
    assert "-D NAME=VALUE" in message


def test_returns_and_conditions_of_macros(kernel: Make) -> None:
    result = kernel(
        """
        B[0, 0] = early(A[0, 0])
        while check(n):
            B[0, 0] = 1
        while True:
            B[0, 0] = 1
        """,
        before="""
        @T.macro
        def early(x):
            if x > 0:
                return x

        @T.macro
        def check(x):
            v = x + 1
            return v > 3
        """,
    )
    assert result.codes == ["T2C209", "T2C243", "T2C315"]
    assert "inlined from here: program.py:" in result.messages[0]


def test_helpers_hold_no_loops_of_the_kernel(kernel: Make) -> None:
    result = kernel(
        "helper(B)",
        before="""
        def helper(X):
            for i in T.serial(3):
                X[i, 0] = 1
        """,
    )
    (message,) = result.messages
    assert (
        "helper runs when the kernel is built; a loop of the kernel in it needs a macro" in message
    )
    assert message.endswith("= help: @T.macro above def helper")


def test_old_spellings_are_understood(program: Make) -> None:
    result = program(
        """
        from tilelang.language import T

        @T.prim_func
        def old(A: T.Tensor((8,), "float32"), B: T.Buffer((8,), "float32")):
            with T.Kernel(1) as bx:
                T.store(B, bx, T.load(A, bx))
        """,
        head="",
    )
    assert result.codes == ["T2C208", "T2C208", "T2C208"]
    assert "B[bx] = A[bx]" in result.text


def test_eager_outputs(program: Make) -> None:
    result = program(
        """
        @tilelang.jit
        def eager(A):
            N = T.const("N")
            A: T.Tensor[[N], "float32"]
            B = T.empty((N,), "float32")
            C = T.empty((N,), "float32")
            with T.Kernel(1):
                B[0] = A[0]
                C[0] = A[0]
            return B, A
        """
    )
    assert result.codes == ["T2C218", "T2C218"]
    assert "C is made by T.empty but not returned" in result.messages[0]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("x = 10 ** 10 ** 10", "T2C114"),
        ("x = 1 << 10 ** 9", "T2C114"),
        ("x = [0] * 10 ** 12", "T2C114"),
        ("x = 'a' * 10 ** 12", "T2C114"),
        ("x = list(range(10 ** 12))", "T2C114"),
        ("x = sum(range(10 ** 12))", "T2C114"),
        ("x = [i for i in range(10 ** 9)]", "T2C114"),
        ("while True: x = 1", "T2C113"),
        ("for i in range(10 ** 9): pass", "T2C114"),
        ("recurse(1)", "T2C113"),
        ("x = f'{1:>1000000000}'", "T2C114"),
        ("x = '%1000000000d' % 1", "T2C114"),
        ("x = double(60) == double(60)", "T2C114"),
        ("x = str(double(60))", "T2C114"),
        ("x = ('a' * 9999).replace('a', 'b' * 9999)", "T2C114"),
    ],
)
def test_bombs_end_soon_and_located(program: Make, line: str, code: str) -> None:
    result = program(
        f"""
        def recurse(n):
            return recurse(n + 1)

        def double(n):
            x = [1]
            for i in range(n):
                x = [x, x]
            return x

        def build():
            {line}

            @T.prim_func
            def main(A: T.Tensor((8,), "float32")):
                with T.Kernel(1) as bx:
                    A[bx] = 1
            return main
        """
    )
    assert result.codes == [code]
    assert result.diagnostics.items[0].span.line in (5, 14)


def test_unrolled_loops_are_bounded(kernel: Make) -> None:
    result = kernel("for i in list(range(50000)):\n    B[i, 0] = 1")
    assert result.codes == ["T2C113"]


def test_nothing_is_run(program: Make) -> None:
    result = program(
        """
        open("made.txt", "w").write("it ran")
        __import__("os").system("touch made.txt")
        eval("1")

        @T.prim_func
        def fine(A: T.Tensor((8,), "float32")):
            with T.Kernel(1) as bx:
                A[bx] = 1
        """
    )
    assert "A[bx] = 1" in result.text
    assert not result.source.path.with_name("made.txt").exists()


def test_no_kernel(program: Make) -> None:
    assert program("x = 1").codes == ["T2C118"]


def test_element_types_are_listed_once(program: Make) -> None:
    result = program(
        """
        @T.prim_func
        def main(A: T.Tensor((8,), "flot16"), B: T.Tensor((8,), "real"), C: T.Tensor((8,), "x")):
            with T.Kernel(1) as bx:
                B[0] = 1
        """
    )
    assert result.codes == ["T2C211"] * 3
    assert result.messages[0].endswith("   = help: did you mean float16?")
    listed = [message.count("float8_e4m3fn,") for message in result.messages]
    assert sum(listed) == 1


SCALE = """
@tilelang.jit
def scale(N, dim=128, factor=2):
    @T.prim_func
    def main(A: T.Tensor((N, dim), "float16"), B: T.Tensor((N, dim), "float16")):
        with T.Kernel(T.ceildiv(N, 16), threads=128) as bx:
            a = T.alloc_fragment((16, dim), "float16")
            T.copy(A[bx * 16, 0], a)
            for i, j in T.Parallel(16, dim):
                a[i, j] = a[i, j] * factor
            T.copy(a, B[bx * 16, 0])
    return main
"""


@pytest.mark.parametrize(
    ("defines", "note"),
    [
        (("dim=100.5",), "-D makes dim 100.5; with 128, as in the source, there is no error"),
        (("factor=4", "dim=-1"), "-D makes dim -1; with 128, as in the source, there is no error"),
        (
            ("dim=1.5", "N=2.5"),
            "-D makes dim 1.5 and N 2.5; with 128 and a run-time size, as in the source, there is "
            "no error",
        ),
    ],
)
def test_a_wrong_define_is_told_once(program: Make, defines: tuple[str, ...], note: str) -> None:
    (message,) = program(SCALE, *defines).messages
    assert message.endswith(f"\n   = note: {note}")


def test_errors_of_the_source_are_all_told_whatever_is_defined(program: Make) -> None:
    text = SCALE.replace("T.copy(", "T.copyy(")
    assert program(text, "dim=64").codes == ["T2C202", "T2C202"]


WRONG_TYPE = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scaled(N, dtype="float17"):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
            tile = T.alloc_shared((64,), dtype)
            sums = T.alloc_fragment((64,), "float32")
            T.clear(sums)
            for i in T.Parallel(64):
                sums[i] += tile[i]
            T.copy(sums, B[bx * 64])
    return main


@tilelang.jit
def other(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float18"), B: T.Tensor((N,), "float18")):
        with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
            T.copy(A[bx * 64], B[bx * 64])
    return main


scaled(T.dynamic("N"))
other(T.dynamic("N"))
"""


def test_a_wrong_type_that_a_name_holds_is_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is written out is a fault at each place; nothing is said of what was left out for it."""
    source = tmp_path / "types.py"
    source.write_text(WRONG_TYPE)
    assert main([str(source), "-o", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err
    assert told.count("'float17' is not an element type") == 1
    assert told.count("'float18' is not an element type") == 2
    assert "warning" not in told
