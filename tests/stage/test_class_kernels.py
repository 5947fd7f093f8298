"""Kernels that methods of classes make, with values by -D CLASS.NAME, from calls and from defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Make = Callable[..., Any]
SCALE = """
class Scale:
    kinds = 2

    def __init__(self, n, block, dtype="float32"):
        self.n = n
        self.block = block
        self.dtype = dtype

    @property
    def blocks(self):
        return T.ceildiv(self.n, self.block)

    def threads(self):
        return self.block // self.kinds

    def kernel(self, factor=2):
        @T.prim_func
        def scaled(A: T.Tensor((self.n,), self.dtype)):
            with T.Kernel(self.blocks, threads=self.threads()) as bx:
                for i in T.Parallel(self.block):
                    A[bx * self.block + i] = A[bx * self.block + i] * factor
        return scaled
"""


def test_what_nothing_fixes(program: Make) -> None:
    """The size becomes one of run time; the block does not."""
    assert program(SCALE).codes == ["T2C116"]
    result = program(SCALE, "Scale.block=64")
    result.must_be_fine()
    text = result.kernels["scaled"].text
    assert 'n = T.dynamic("n")' in text and "threads=32" in text and "T.float32" in text
    text = program(SCALE, "Scale.block=64", "Scale.dtype=float16", "scaled.factor=3").text
    assert "T.float16" in text and "factor = 3" in text


def test_names_of_kernels_that_are_called_kernel(program: Make) -> None:
    """CLASS_METHOD, where neither the function nor what is inside the method has a name of its own."""
    text = SCALE.replace("scaled", "kernel").replace("class Scale:", "class RowScale:")
    result = program(text, "row_scale_kernel.block=64", "RowScale.factor=3")
    assert list(result.kernels) == ["row_scale_kernel"]
    text = text.replace("    def kernel(self", "    def _buildMHA2D(self")
    assert list(program(text, "block=64").kernels) == ["row_scale_build_mha2d"]
    assert program(text).codes == ["T2C116"]


def test_calls_of_the_file(program: Make) -> None:
    """One kernel for each object; -D is above them."""
    text = SCALE + (
        "\n\ndef main():\n    Scale(1000, 32).kernel()\n    Scale(1000, 128, 'float16').kernel(3)\n"
        "\n\nif __name__ == '__main__':\n    main()\n"
    )
    names = sorted(program(text).kernels)
    assert names == [
        "scaled_block128_dtype_float16_factor3",
        "scaled_block32_dtype_float32_factor2",
    ]
    fixed = program(text, "Scale.block=64", "dtype=float32", "factor=2")
    assert list(fixed.kernels) == ["scaled"]


def test_compiled_methods_and_static_ones(program: Make) -> None:
    text = """
    class Kernels:
        def __init__(self, block):
            self.block = block

        @tilelang.jit(out_idx=[-1])
        def first(self, n):
            @T.prim_func
            def ones(A: T.Tensor((n,), "float32")):
                with T.Kernel(n, threads=self.block) as bx:
                    A[bx] = 1
            return ones

        @staticmethod
        @tilelang.jit
        def second(A, block: int = 32):
            n = T.const("n")
            A: T.Tensor((n,), "float32")
            with T.Kernel(T.ceildiv(n, block), threads=block) as bx:
                A[bx] = 2
    """
    result = program(text, "Kernels.block=96")
    result.must_be_fine()
    assert sorted(result.kernels) == ["ones", "second"]
    assert "threads=96" in result.kernels["ones"].text


def test_an_object_of_the_module_is_not_made_again(program: Make) -> None:
    text = SCALE + "\n\nmade = Scale(512, 32).kernel()\n"
    result = program(text)
    assert list(result.kernels) == ["scaled"]


def test_two_kernels_of_the_module_by_one_method(program: Make) -> None:
    text = """
    class Op:
        def __init__(self, M, N):
            self.M, self.N = M, N

        def fill(self):
            M, N = self.M, self.N

            @T.prim_func
            def main(A: T.Tensor((M, N), "float32")):
                with T.Kernel(T.ceildiv(M, 16), threads=128) as bx:
                    for i, j in T.Parallel(16, N):
                        A[bx * 16 + i, j] = 2.0

            return main

    one = Op(100, 64).fill()
    two = Op(100, 128).fill()
    """
    result = program(text)
    result.must_be_fine()
    assert list(result.kernels) == ["op_fill_N64", "op_fill_N128"]
