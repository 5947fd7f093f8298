"""HIP kernels in the emulator against the interpreter, with races and memory checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hip_programs import GEMMS, REDUCTIONS, SAMPLES, built, close, meant, random


@pytest.mark.parametrize("n", [1, 255, 1024, 1361])
def test_add(tmp_path: Path, n: int) -> None:
    source = SAMPLES / "add.py"
    a, b = random((n,), "float32", 1), random((n,), "float32", 2)
    got = built(source, tmp_path)["add"](a, b)
    close(got, meant(source, {"A": a, "B": b})["C"], "float32")


@pytest.mark.parametrize("threads", [64, 128, 256])
@pytest.mark.parametrize("shape", [(1, 1), (9, 511), (17, 1030), (8, 512)])
def test_row_sum(tmp_path: Path, threads: int, shape: tuple[int, int]) -> None:
    source = SAMPLES / "row_sum.py"
    x = random(shape, "float32", 1)
    got = built(source, tmp_path, threads=threads)["row_sum"](x)
    close(got, meant(source, {"X": x}, threads=threads)["Y"], "float32", scale=30)


@pytest.mark.parametrize("threads", [32, 64, 96, 256])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_reductions_in_16_bits(tmp_path: Path, dtype: str, threads: int) -> None:
    choices = {"dtype": dtype, "threads": threads}
    x = random((7, 256), dtype, 1)
    high, spread = built(REDUCTIONS, tmp_path, **choices)["extremes"](x)
    wanted = meant(REDUCTIONS, {"X": x}, **choices)
    close(high, wanted["high"], dtype)
    close(spread, wanted["spread"], dtype, scale=4)


@pytest.mark.parametrize("block_M", [1, 2])
@pytest.mark.parametrize("threads", [64, 128, 256])
@pytest.mark.parametrize("n", [512, 777])
def test_softmax(tmp_path: Path, block_M: int, threads: int, n: int) -> None:
    source = SAMPLES / "softmax.py"
    choices = {"block_M": block_M, "threads": threads, "N": n}
    x = random((3, n), "float16", 1)
    got = built(source, tmp_path, **choices)["softmax"](x)
    close(got, meant(source, {"X": x}, **choices)["Y"], "float16", scale=0.01)


@pytest.mark.parametrize("size", [(1, 1, 1), (128, 128, 64), (130, 136, 40), (33, 129, 77)])
@pytest.mark.parametrize("name", ["gemm", "gemm_bias_relu"])
def test_gemm_samples(tmp_path: Path, name: str, size: tuple[int, int, int]) -> None:
    m, n, k = size
    source = SAMPLES / f"{name}.py"
    given: dict[str, Any] = {"A": random((m, k), "float16", 1), "B": random((k, n), "float16", 2)}
    if name == "gemm_bias_relu":
        given["bias"] = random((n,), "float16", 3)
    got = built(source, tmp_path)[name](*given.values())
    close(got, meant(source, given)["C"], "float16", scale=k**0.5)


def product(out: Path, arch: str, size: tuple[int, int, int], **choices: object) -> None:
    """Runs tests/hip/gemms.py with these choices and compares."""
    m, n, k = size
    dtype = str(choices.get("dtype", "float16"))
    shape_a = (k, m) if choices.get("transpose_A") else (m, k)
    shape_b = (n, k) if choices.get("transpose_B") else (k, n)
    given = {"A": random(shape_a, dtype, 1), "B": random(shape_b, dtype, 2)}
    got = built(GEMMS, out, arch, **choices)["product"](*given.values())
    close(
        got, meant(GEMMS, given, **choices)["C"], str(choices.get("out_dtype", "float16")), k**0.5
    )


ARCHES = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]


@pytest.mark.parametrize(
    ("arch", "transpose_A", "transpose_B"),
    [
        *((arch, both, both) for arch in ARCHES for both in (False, True)),
        ("gfx942", False, True),
        ("gfx942", True, False),
    ],
)
def test_transposed_operands(
    tmp_path: Path, arch: str, transpose_A: bool, transpose_B: bool
) -> None:
    for number, size in enumerate([(72, 80, 96), (65, 67, 37)]):
        product(
            tmp_path / str(number), arch, size, transpose_A=transpose_A, transpose_B=transpose_B
        )


@pytest.mark.parametrize("arch", ARCHES)
def test_bfloat16(tmp_path: Path, arch: str) -> None:
    product(tmp_path, arch, (66, 70, 72), dtype="bfloat16", out_dtype="bfloat16")


@pytest.mark.parametrize(
    ("threads", "num_stages"), [(64, 0), (64, 3), (128, 1), (128, 2), (256, 0), (256, 2)]
)
def test_threads_and_stages(tmp_path: Path, threads: int, num_stages: int) -> None:
    choices = {"threads": threads, "num_stages": num_stages, "out_dtype": "float32"}
    product(tmp_path, "gfx942", (64, 65, 130), **choices)


@pytest.mark.parametrize("tiles", [(16, 16, 16), (32, 128, 48), (128, 32, 64)])
def test_tiles(tmp_path: Path, tiles: tuple[int, int, int]) -> None:
    block_M, block_N, block_K = tiles
    product(
        tmp_path,
        "gfx942",
        (40, 40, 100),
        block_M=block_M,
        block_N=block_N,
        block_K=block_K,
        threads=64,
    )


def test_one_shared_tile_where_two_do_not_fit(tmp_path: Path) -> None:
    """The next tile then waits in registers until nobody reads the old one."""
    choices = {"block_M": 128, "block_N": 128, "block_K": 128, "threads": 256}
    product(tmp_path, "gfx942", (130, 130, 300), **choices)
    (path,) = tmp_path.glob("*.hip")
    assert "A_shared[128][128];" in path.read_text()
