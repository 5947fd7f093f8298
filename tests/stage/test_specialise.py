"""Which kernels a file has, with which values, under which names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.stage import DefineError, UnknownName, list_kernels, parse_defines

Make = Callable[..., Any]

FACTORY = """
@tilelang.jit(out_idx=[-1])
def scale(M, N, block=32, dtype="float16"):
    # Doubles a matrix.
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as b:
            for r, c in T.Parallel(block, N):
                Y[b * block + r, c] = X[b * block + r, c] * 2
    return main
"""


def test_nothing_fixes_sizes(program: Make) -> None:
    result = program(FACTORY)
    (kernel,) = result.kernels.values()
    assert (kernel.name, kernel.function, kernel.sizes) == ("scale", "main", ("M", "N"))
    assert kernel.parameters == {"block": 32, "dtype": "float16"}
    assert kernel.source_line == 8 and kernel.source_file == "program.py"
    assert kernel.summary == ""  # a comment is no docstring: it changes no text
    assert "# Doubles a matrix.\n@T.prim_func\ndef scale(\n" in kernel.text


def test_calls_in_the_file_fix_and_defines_win(program: Make) -> None:
    called = FACTORY + (
        "\ndef main():\n    import torch\n    for n in (512, 1024):\n"
        "        kernel = scale(256, n, dtype=torch.bfloat16)\n"
        "\nif __name__ == '__main__':\n    main()\n"
    )
    result = program(called)
    assert list(result.kernels) == ["scale_N512", "scale_N1024"]
    assert result.kernels["scale_N512"].parameters["dtype"] == "bfloat16"
    assert "M = 256\nN = 512\n" in result.kernels["scale_N512"].text
    one = program(called, "N=dynamic", "scale.block=64")
    assert list(one.kernels) == ["scale"]
    assert one.kernels["scale"].sizes == ("N",)
    assert one.kernels["scale"].parameters["block"] == 64


def test_suffixes_are_sorted_by_name(program: Make) -> None:
    result = program(FACTORY + "\nscale(8, 8, block=64)\nscale(8, 8, block=16, dtype='float32')\n")
    assert list(result.kernels) == ["scale_block64_dtype_float16", "scale_block16_dtype_float32"]


def test_sizes_through_tensors_and_dynamic_arguments(program: Make) -> None:
    result = program(
        FACTORY
        + """
        def wrapper(a):
            m, n = a.shape
            return scale(m, T.dynamic("cols"))(a)

        def test_it():
            import torch
            wrapper(torch.randn(64, 32, device="cuda", dtype=torch.float16))
        """.replace("\n        ", "\n")
    )
    (kernel,) = result.kernels.values()
    assert kernel.parameters["M"] == 64 and kernel.sizes == ("cols",)


def test_argparse_gives_defaults(program: Make) -> None:
    result = program(
        FACTORY
        + """
        def main():
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("--m", type=int, default=128)
            parser.add_argument("--block-size", type=int, default=16)
            args = parser.parse_args()
            scale(args.m, args.m * 2, args.block_size)

        if __name__ == "__main__":
            main()
        """.replace("\n        ", "\n")
    )
    (kernel,) = result.kernels.values()
    assert kernel.parameters == {"M": 128, "N": 256, "block": 16, "dtype": "float16"}


def test_decisions_make_a_kernel_not_ready(program: Make) -> None:
    text = """
    def decide(M, threads):
        if M % 4 == 0:
            width = 4
        else:
            width = 1

        @T.prim_func
        def decide(A: T.Tensor((M,), "float32")):
            with T.Kernel(M, threads=threads) as b:
                A[b] = width
        return decide

    @T.prim_func
    def other(A: T.Tensor((8,), "float32")):
        with T.Kernel(8) as b:
            A[b] = 0
    """
    skipped = program(text)
    assert list(skipped.kernels) == ["other"] and skipped.codes == ["T2C117"]
    assert "-D M=VALUE" in skipped.messages[0]
    named = program(text, only=("decide",))
    assert named.codes == ["T2C116"] and not named.kernels
    still = program(text, "M=64", only=("decide",))
    assert "threads has to be known" in still.messages[0]
    made = program(text, "M=64", "threads=32", only=("decide",))
    assert "A[b] = width" in made.kernels["decide"].text
    assert "width = 4" in made.kernels["decide"].text


def test_unknown_names_are_told_with_the_nearest(program: Make) -> None:
    with pytest.raises(UnknownName, match="did you mean block"):
        program(FACTORY, "blokc=3")
    with pytest.raises(UnknownName, match="did you mean scale"):
        program(FACTORY, only=("scal",))
    with pytest.raises(DefineError):
        parse_defines(["block"])
    with pytest.raises(DefineError):
        parse_defines(["block=__import__('os')"])


def test_names_of_kernels(program: Make) -> None:
    result = program(
        """
        def outer():
            @T.prim_func
            def kernel(A: T.Tensor((8,), "float32")):
                with T.Kernel(8) as b:
                    A[b] = 0
            return kernel

        @tilelang.jit(out_idx=-1)
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(8) as b:
                A[b] = 1

        def one():
            @T.prim_func
            def same(A: T.Tensor((8,), "float32")):
                with T.Kernel(8) as b:
                    A[b] = 2
            return same

        def two():
            @T.prim_func
            def same(A: T.Tensor((8,), "float32")):
                with T.Kernel(8) as b:
                    A[b] = 3
            return same
        """
    )
    assert list(result.kernels) == ["outer", "program", "one_same", "two_same"]


def test_eager_style(program: Make) -> None:
    result = program(
        """
        @tilelang.jit
        def rowscale(X, w, bm: int = 64):
            M, N = T.const("M, N")
            dt = T.float16
            X: T.Tensor[[M, N], dt]  # the rows
            w: T.Tensor[[N], dt]
            Y = T.empty((M, N), dt)
            with T.Kernel(T.ceildiv(M, bm), threads=128) as b:
                for i, j in T.Parallel(bm, N):
                    Y[b * bm + i, j] = X[b * bm + i, j] * w[j]
            return Y
        """
    )
    (kernel,) = result.kernels.values()
    assert kernel.sizes == ("M", "N") and kernel.parameters == {"bm": 64}
    assert (
        "def rowscale(\n"
        "    X: T.Tensor((M, N), T.float16),  # the rows\n"
        "    w: T.Tensor((N,), T.float16),\n"
        "    Y: T.Tensor((M, N), T.float16),\n"
        "):\n"
    ) in kernel.text


def test_autotune_takes_defaults_then_the_first_config(program: Make) -> None:
    result = program(
        """
        import itertools

        def configs():
            pairs = itertools.product([64, 128], [2, 3])
            return [{"block": b, "stages": s} for b, s in pairs]

        @tilelang.autotune(configs=configs(), warmup=3)
        @tilelang.jit
        def copy(N, block=None, stages=4):
            @T.prim_func
            def copy(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
                with T.Kernel(T.ceildiv(N, block)) as b:
                    for i in T.Pipelined(1, num_stages=stages):
                        T.copy(A[b * block:(b + 1) * block], B[b * block:(b + 1) * block])
            return copy
        """
    )
    (kernel,) = result.kernels.values()
    assert kernel.parameters == {"block": 64, "stages": 4}


def test_factories_in_factories(program: Make) -> None:
    result = program(
        """
        def attention(heads, tune=False):
            scale = (1.0 / heads) ** 0.5

            def build(block):
                @T.prim_func
                def main(A: T.Tensor((heads, block), "float32")):
                    with T.Kernel(heads, threads=block) as h:
                        A[h, 0] = scale
                return main

            if tune:
                return None
            return build

        def main():
            attention(4)(64)
            attention(4)(block=128)

        main()
        """
    )
    assert list(result.kernels) == ["build_block64", "build_block128"]
    assert "scale = 0.5\n" in result.kernels["build_block64"].text


def test_host_python(program: Make) -> None:
    result = program(
        """
        import math
        from dataclasses import dataclass

        @dataclass
        class Config:
            block: int = 32
            dtype: str = "float16"

            @property
            def unused(self):
                return 1

        TABLE = {"small": Config(16), "large": Config(64, dtype="float32")}

        def build(kind="large", shape=(4, 8)):
            cfg = TABLE[kind]
            rows, *rest = shape
            assert rows > 0, f"rows is {rows}"
            total = sum(x * 2 for x in rest if x > 1) + int(math.log2(cfg.block)) + len(kind)
            name = f"{kind}_{rows:02d}"
            flags = [i for i, c in enumerate(name) if c in "ae"]
            while total > 40:
                total -= 1
            last = flags[-1]

            @T.prim_func
            def built(A: T.Tensor((rows, *rest), cfg.dtype)):
                with T.Kernel(rows) as b:
                    A[b, last] = total
            return built
        """
    )
    text = result.text
    assert "last = 4\n" in text or "last = 1\n" in text
    assert "total = 27\n" in text and "T.Tensor((4, 8), T.float32)" in text


EAGER = """
@tilelang.jit
def tile(A, t):
    A: T.Tensor((8,), "float32")
    with T.Kernel(1, threads=t):
        A[0] = 1
"""


def test_listing(program: Make) -> None:
    result = program(FACTORY + EAGER)
    first, second = list_kernels(result.source, parse_defines([]), Diagnostics())
    assert (first.name, first.line, first.style, first.ready) == ("scale", 8, "factory", True)
    assert first.parameters == {"M": None, "N": None, "block": 32, "dtype": "float16"}
    assert first.sizes == ("M", "N")
    assert (second.name, second.style, second.parameters) == ("tile", "eager", {"t": None})
    assert isinstance(second.ready, str) and "-D t=VALUE" in second.ready
