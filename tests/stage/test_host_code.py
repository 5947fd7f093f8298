"""Host code around kernels: generators, containers of kernels, loops that make several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Make = Callable[..., Any]


def test_a_generator_gives_its_items(program: Make) -> None:
    text = """
    def blocks(most):
        b = 16
        while b <= most:
            yield b
            b *= 2
        yield from (3, 5)

    @tilelang.jit
    def factory(n):
        b = max(blocks(64))
        @T.prim_func
        def ones(A: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, b), threads=b) as bx:
                A[bx] = 1
        return ones
    """
    assert "b = 64" in program(text).text


def test_a_generator_without_end(program: Make) -> None:
    text = """
    def blocks():
        while True:
            yield 1

    @tilelang.jit
    def factory(n):
        b = max(blocks())
        @T.prim_func
        def ones(A: T.Tensor((n,), "float32")):
            with T.Kernel(n, threads=b) as bx:
                A[bx] = 1
        return ones
    """
    (code,) = program(text).codes
    assert code in ("T2C113", "T2C114")


def test_kernels_that_a_loop_makes(program: Make) -> None:
    """Each is built where it is defined, with the values of its round."""
    text = """
    def factory(n):
        kernels = {}
        for b in (32, 64):
            @T.prim_func
            def ones(A: T.Tensor((n,), "float32")):
                with T.Kernel(T.ceildiv(n, b), threads=b) as bx:
                    A[bx] = 1
            kernels[b] = tilelang.compile(ones)
        return kernels
    """
    result = program(text)
    result.must_be_fine()
    texts = "\n".join(kernel.text for kernel in result.kernels.values())
    assert len(result.kernels) == 2 and "threads=32" in texts and "threads=64" in texts
