"""Public reports on generated texts and on launchers: order, headers, symbols, promises."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tile2c
from language_programs import CUDA, HIP, checked, empty, text_of, values, written

SAMPLES = Path(__file__).parents[2] / "samples"
ASCEND = "ascendc:ascend910b"
ADD = """
n = T.dynamic("n")


@T.prim_func
def main(A: T.Tensor((n,), "bfloat16"), B: T.Tensor((n,), "bfloat16"), C: T.Tensor((n,), "bfloat16")):
    with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
        for i in T.Parallel(128):
            C[bx * 128 + i] = A[bx * 128 + i] + B[bx * 128 + i]
"""


def test_h37_a_buffer_is_refilled_after_its_store(tmp_path: Path) -> None:
    """Sixteen rounds of load, compute and store: the checks know what orders them."""
    text = """
@T.prim_func
def main(A: T.Tensor((16, 256), "float32"), O: T.Tensor((16, 256), "float32")):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((256,), "float32")
        o = T.alloc_shared((256,), "float32")
        for k in T.Pipelined(16, num_stages=2):
            T.copy(A[k, 0], s)
            for j in T.Parallel(256):
                o[j] = s[j] * 2.0
            T.copy(o, O[k, 0])
"""
    arguments = {"A": values((16, 256)), "O": empty((16, 256))}
    for target in (ASCEND, CUDA):
        checked(tmp_path, text, arguments, target)
        shutil.rmtree(tmp_path / "out")


def test_h38_a_tail_chosen_by_a_comparison(tmp_path: Path) -> None:
    """Rows of 69 in tiles of 64: the second tile holds five."""
    text = """
@T.prim_func
def main(A: T.Tensor((4, 69), "float16"), O: T.Tensor((4, 69), "float16")):
    with T.Kernel(4, 2, threads=64) as (r, c):
        s = T.alloc_shared((64,), "float16")
        T.copy(A[r, c * 64], s)
        for j in T.Parallel(64):
            s[j] = T.if_then_else(s[j] > T.float16(0), s[j], T.float16(1))
        T.copy(s, O[r, c * 64])
"""
    a = values((4, 69), "float16")
    for target in (ASCEND, CUDA):
        got = checked(tmp_path, text, {"A": a, "O": empty((4, 69), "float16")}, target)
        np.testing.assert_array_equal(got["O"], np.where(a > 0, a, np.float16(1)))
        shutil.rmtree(tmp_path / "out")


def test_h45_values_beyond_an_8_bit_float(tmp_path: Path) -> None:
    """The language's rule is to saturate to the largest finite number; NaN stays NaN."""
    text = """
@T.prim_func
def main(A: T.Tensor((5,), "float32"), O: T.Tensor((5,), "float8_e5m2")):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(5):
            O[i] = T.cast(A[i], "float8_e5m2")
"""
    a = np.array([np.inf, -np.inf, 1e9, 60000, np.nan], np.float32)
    got = checked(tmp_path, text, {"A": a, "O": empty(5, "float8_e5m2")})["O"].astype(np.float32)
    np.testing.assert_array_equal(got, [57344, -57344, 57344, 57344, np.nan])


def test_h57_a_product_of_constants_that_passes_31_bits(tmp_path: Path) -> None:
    """No index that is used does; the tensor is never touched but at four places."""
    text = """
@T.prim_func
def main(A: T.Tensor((1600000000,), "int8"), O: T.Tensor((4,), "int8")):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(4):
            O[i] = A[i * 500000000]
"""
    path = written(tmp_path, text)
    kernel = tile2c.build(path, tmp_path / "out", CUDA, backend="emulate")["program"]
    a, o = np.zeros(1_600_000_000, np.int8), np.full(4, -7, np.int8)
    a[::500_000_000] = [1, 2, 3, 4]
    kernel(a, o)
    np.testing.assert_array_equal(o, [1, 2, 3, 4])


def test_h69_a_promise_that_a_call_breaks(tmp_path: Path) -> None:
    path = written(tmp_path, ADD)
    kernel = tile2c.build(path, tmp_path / "out", CUDA, {"n%8": 0}, backend="emulate")["program"]
    import ml_dtypes

    for n in (1000, 8):
        a = np.ones(n, ml_dtypes.bfloat16)
        assert (kernel(a, a).astype(np.float32) == 2).all()
    a = np.ones(1003, ml_dtypes.bfloat16)
    with pytest.raises(ValueError, match=r"program needs n % 8 == 0, but n = 1003"):
        kernel(a, a)


THREE = """
@tilelang.jit
def {name}(N):
    @T.prim_func
    def main(A: T.Tensor((N, 64), "float32"), O: T.Tensor((N, 64), "float32")):
        with T.Kernel(N, threads=64) as bx:
            a = T.alloc_shared((64,), "float32")
            b = T.alloc_shared((64,), "float32")
            c = T.alloc_shared((64,), "float32")
            d = T.alloc_shared((64,), "float16")
            e = T.alloc_shared((1,), "float32")
            T.copy(A[bx, 0], a)
            for j in T.Parallel(64):
                b[j] = a[63 - j]
            T.cumsum(b, c)
            T.copy(c, d)
            T.reduce_max(c, e)
            for j in T.Parallel(64):
                O[bx, j] = d[j] + e[0]
    return main

"""


def test_h84_the_same_bytes_under_every_hash_seed(tmp_path: Path) -> None:
    path = written(tmp_path, "\n".join(THREE.format(name=f"kernel_{x}") for x in "abc"))
    found = set()
    for seed in ("0", "1", "2", "77"):
        out = tmp_path / f"out{seed}"
        command = [sys.executable, "-m", "tile2c", str(path), "-o", str(out)]
        command += ["--target", f"{CUDA},{HIP}"]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        files = sorted(item for item in out.rglob("*") if item.is_file())
        found.add(b"".join(str(x.relative_to(out)).encode() + x.read_bytes() for x in files))
    assert len(found) == 1


HEADERS = {
    "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "hip/hip_runtime.h", "hip/hip_fp16.h",
    "hip/hip_bf16.h", "hip/hip_bfloat16.h", "hip/hip_fp8.h", "kernel_operator.h",
}  # fmt: skip


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_h85_only_the_vendors_headers(tmp_path: Path, target: str) -> None:
    """And compiled alone where the compiler is there."""
    for sample in ("gemm", "softmax", "row_sum"):
        defines = {"N": 1000} if sample == "softmax" else {}
        tile2c.build(SAMPLES / f"{sample}.py", tmp_path / "out", target, defines, backend="emulate")
    texts = [*(tmp_path / "out").glob("*.cu"), *(tmp_path / "out").glob("*.hip")]
    assert len(texts) == 3
    for path in texts:
        included = re.findall(r"#include [<\"](.*)[>\"]", path.read_text())
        assert set(included) <= HEADERS, path.name
    nvcc = shutil.which("nvcc")
    if nvcc is not None and target == CUDA:
        for path in texts:
            alone = tmp_path / path.stem
            alone.mkdir()
            shutil.copy(path, alone)
            command = [nvcc, "-arch=sm_80", "-std=c++17", "-cubin", path.name]
            subprocess.run(command, cwd=alone, check=True)


def test_h86_helpers_do_not_meet_when_kernels_are_linked(tmp_path: Path) -> None:
    """Every function but the entry points has internal linkage."""
    text = THREE.format(name="one") + THREE.format(name="two")
    out = tmp_path / "out"
    tile2c.build(written(tmp_path, text), out, CUDA, backend="emulate")
    for path in out.glob("*.cu"):
        lines = path.read_text().splitlines()
        functions = [line for line in lines if re.search(r"__device__|__global__", line)]
        assert any("static __device__" in line for line in functions)
        for line in functions:
            assert line.startswith(("static ", 'extern "C" __global__')), line
    compiler = shutil.which("nvcc")
    if compiler is not None:
        names = [str(path) for path in sorted(out.glob("*.cu"))]
        command = [compiler, "-arch=sm_80", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", *names]
        subprocess.run([*command, "-o", str(tmp_path / "both.so")], check=True)


def test_one_kernel_for_every_length(tmp_path: Path) -> None:
    """Beside H-69: without a promise all lengths are right."""
    for n in (1, 127, 129):
        arguments = {name: values(n, "bfloat16", seed) for seed, name in enumerate("AB")}
        checked(tmp_path, ADD, {**arguments, "C": empty(n, "bfloat16")})
    assert "__nv_bfloat16" in text_of(tmp_path, ADD)
