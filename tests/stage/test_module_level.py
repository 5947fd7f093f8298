"""What a file does beside its kernels: code that never ends, exceptions, questions to the device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tile2c.transpile import pipeline
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.stage import parse_defines

Make = Callable[..., Any]
KERNEL = """
@T.prim_func
def ones(A: T.Tensor((32,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        A[bx] = 1
"""
DEVICE = """
import torch
import tilelang
import tilelang.language as T


def threads():
    if not torch.cuda.is_available():
        raise RuntimeError("no device")
    major, minor = torch.cuda.get_device_capability()
    return 64 if major * 10 + minor == 80 else 256


@tilelang.jit
def factory(n):
    @T.prim_func
    def ones(A: T.Tensor((n,), "int32")):
        with T.Kernel(torch.cuda.get_device_properties(0).multi_processor_count, threads=t) as bx:
            A[bx] = bx
    t = threads()
    return ones
"""


def test_a_loop_that_never_ends_is_named(program: Make) -> None:
    result = program("while True:\n    pass\n" + KERNEL)
    assert result.codes == ["T2C113"]
    assert "while True:" in result.messages[0]


def test_an_exception_of_the_module_is_named(program: Make) -> None:
    result = program("raise RuntimeError('no')\n" + KERNEL)
    assert result.codes == ["T2C119"]


def test_an_exception_that_may_not_come(program: Make) -> None:
    text = "import os\nif os.path.exists('x'):\n    raise RuntimeError('no')\n" + KERNEL
    assert list(program(text).kernels) == ["ones"]


def test_a_kernel_of_the_file_that_the_file_calls(program: Make) -> None:
    """Calling it makes no second output."""
    text = """
    @tilelang.jit
    def twice(A):
        N = T.const("N")
        A: T.Tensor((N,), "int32")
        B = T.empty((N,), "int32")
        with T.Kernel(T.ceildiv(N, 32), threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * 2
        return B

    compiled = twice.compile(N=64)
    """
    result = program(text)
    result.must_be_fine()


def test_a_failing_factory_stops_only_itself(program: Make) -> None:
    text = """
    @tilelang.jit
    def one(n):
        assert False, "never"
        @T.prim_func
        def first(A: T.Tensor((n,), "int32")):
            with T.Kernel(1, threads=32) as bx:
                A[bx] = 1
        return first
    """
    assert list(program(text + KERNEL.replace("\n", "\n    "), only=("ones",)).kernels) == ["ones"]
    assert program(text + KERNEL.replace("\n", "\n    "), only=("first",)).codes == ["T2C119"]


def asked(tmp_path: Path, *targets: str) -> dict[str, str]:
    path = tmp_path / "device.py"
    path.write_text(DEVICE)
    request = pipeline.Request(inputs=(path,), targets=targets, defines=parse_defines(()))
    diagnostics = Diagnostics()
    texts = pipeline.generate(request, diagnostics)
    assert not diagnostics.failed, diagnostics.items
    return dict(zip(targets, (text.text for text in texts), strict=True))


def test_the_target_answers_for_the_device(tmp_path: Path) -> None:
    """Each target its own answer, also where one run writes for several."""
    found = asked(tmp_path, "cuda:sm_80", "cuda:sm_90a", "hip:gfx942")
    assert "grid (108), block 64" in found["cuda:sm_80"]
    assert "grid (132), block 256" in found["cuda:sm_90a"]
    assert "grid (304), block 256" in found["hip:gfx942"]


TUNED = """
from tilelang.autotuner import AutoTuner
from tilelang.language.fp8 import determine_fp8_type
import tvm.tirx as tirx


def configs(n, wide):
    return [{"block": 64 if wide else 128, "dtype": determine_fp8_type("e5m2")}, {"block": 32}]


def best(n, wide=False):
    def kernel(block=None, dtype=None):
        @T.prim_func
        def scaled(A: T.Tensor((n,), dtype)):
            with T.Kernel(T.ceildiv(n, block), threads=block) as bx:
                tx = T.get_thread_binding()
                A[bx * block + tx] = tirx.reinterpret(dtype, tirx.const(1, "uint8"))
        return scaled

    tuner = AutoTuner.from_kernel(kernel=kernel, configs=configs(n, wide)).set_compile_args(
        out_idx=[-1]
    )
    return tuner.set_profile_args(skip_check=True).run(warmup=3, rep=20)


def maker():
    def kernel(block=None):
        @T.prim_func
        def filled(A: T.Tensor((64,), "int32")):
            with T.Kernel(1, threads=block) as bx:
                A[bx] = 1
        return filled

    return kernel


if __name__ == "__main__":
    AutoTuner.from_kernel(kernel=maker(), configs=[{"block": 96}]).run()
"""


def test_a_tuner_gives_its_first_configuration(program: Make) -> None:
    result = program(TUNED)
    result.must_be_fine()
    assert "threads=block" in result.kernels["scaled"].text
    assert "block = 128" in result.kernels["scaled"].text
    assert "T.reinterpret(T.cast(1, T.uint8), T.float8_e5m2)" in result.kernels["scaled"].text
    assert "block = 96" in result.kernels["filled"].text


FACTORY = """
def scale(M, N, bM=16):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, bM), threads=128) as bx:
            for i, j in T.Parallel(bM, N):
                B[bx * bM + i, j] = A[bx * bM + i, j] * 2.0
    return main

"""
JIT = "\n@tilelang.jit(out_idx=[-1])" + FACTORY
ONE = {
    "jit": JIT + "kernel = scale(100, 64)",
    "main guard": JIT + "if __name__ == '__main__':\n    kernel = scale(100, 64)",
    "run-time sizes": JIT + "kernel = scale(T.dynamic('M'), T.dynamic('N'))",
    "compiled": FACTORY + "kernel = tilelang.compile(scale(100, 64), out_idx=[-1])",
    "compiled by name": FACTORY + "func = scale(100, 64)\nk = tilelang.compile(func, out_idx=[-1])",
    "plain": FACTORY + "kernel = scale(100, 64)",
    "equal calls": JIT + "one = scale(100, 64)\ntwo = scale(100, N=64)",
    "its own name": JIT + "scale = scale(100, 64)",
    "not assigned": JIT + "scale(100, 64)",
}
TWO = {
    "jit": JIT + "one = scale(100, 64)\ntwo = scale(100, 128)",
    "compiled": FACTORY + "one = tilelang.compile(scale(100, 64))\n"
    "two = tilelang.compile(scale(100, 128))",
    "in one statement": JIT + "one, two = scale(100, 64), scale(100, 128)",
    "in a list": JIT + "kernels = [scale(100, n) for n in (64, 128)]",
}


@pytest.mark.parametrize("spelling", ONE)
def test_a_kernel_of_the_module_is_written_once(program: Make, spelling: str) -> None:
    result = program(ONE[spelling])
    result.must_be_fine()
    assert list(result.kernels) == ["scale"]
    assert ("\nM = 100\nN = 64\n" in result.text) == (spelling != "run-time sizes")


@pytest.mark.parametrize("spelling", TWO)
def test_two_kernels_of_the_module_are_named_by_what_differs(program: Make, spelling: str) -> None:
    result = program(TWO[spelling])
    result.must_be_fine()
    assert list(result.kernels) == ["scale_N64", "scale_N128"]
