"""What bench/hopper.py measures: programs, our choices of tile sizes, goals. Needs no device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Case:
    """A row of the table. `ours`: name of a folder -> values for -D; `goal`: ratio to the best rival."""

    name: str
    title: str
    program: str  # file of the tile program
    kernel: str
    ours: Mapping[str, str]
    problem: Callable[[], Any]  # a Problem
    goal: float
    ways: tuple[str, ...] = ("burst", "steady")


def _on_device() -> ModuleType:
    import hopper_problems

    return hopper_problems


WIDE = "block_M=128 block_N=256 block_K=64 num_stages=4 threads=256"
TALL = "block_M=256 block_N=128 block_K=64 num_stages=4 threads=256"
TALL3 = "block_M=256 block_N=128 block_K=64 num_stages=3 threads=256"
WIDE3 = "block_M=128 block_N=256 block_K=64 num_stages=3 threads=256"
TL_GEMM = (WIDE, "block_M=128 block_N=256 block_K=64 num_stages=3 threads=256")
SMALL_M = (
    "block_M=16 block_N=64 block_K=256 num_stages=4 threads=128",
    "block_M=16 block_N=128 block_K=128 num_stages=4 threads=128",
)
DEEP = "block_M=16 block_N=64 block_K=128 num_stages=6 threads=128"
FP8_TILES = (
    "block_M=128 block_N=192 block_K=128 num_stages=5 threads=256",
    "block_M=128 block_N=256 block_K=128 num_stages=4 threads=256",
    "block_M=128 block_N=256 block_K=128 num_stages=3 threads=256",
)
FP8_ACCURATE = (  # sums leave the matrix unit whole
    FP8_TILES[0],
    "block_M=192 block_N=128 block_K=128 num_stages=5 threads=384",
)
FLASH = ("block_M=128 block_N=128 num_stages=2 threads=256",)
CONV = (
    "block_M=256 block_N=128 block_K=64 num_stages=4 threads=256",
    "block_M=256 block_N=128 block_K=64 num_stages=3 threads=256",
    "block_M=128 block_N=128 block_K=64 num_stages=4 threads=256",
)
FLASH_NARROW = {  # heads of 64, by whether they are causal: two blocks an SM for tiles of 128 x 64
    False: ("block_M=192 block_N=128 num_stages=2 threads=384",),
    True: (*FLASH, "block_M=128 block_N=64 num_stages=2 threads=256"),
}
FLASH_WIDE = (  # heads of 256
    "block_M=128 block_N=64 num_stages=2 threads=256",
    "block_M=128 block_N=80 num_stages=2 threads=256",
)


def _numbered(settings: tuple[str, ...], prefix: str = "") -> dict[str, str]:
    return {f"v{number}": f"{prefix} {text}".strip() for number, text in enumerate(settings)}


def _gemm(m: int, n: int, k: int, word: str, goal: float, fixed: bool = False) -> Case:
    kind = "dtype=bfloat16" if word == "bf16" else ""
    ours = _numbered((WIDE, WIDE3), kind)
    if fixed:
        ours["known"] = f"{ours['v0']} M={m} N={n} K={k}"
    return Case(
        name=f"gemm_{word}_{m}x{n}x{k}",
        title=f"GEMM {word} {m} x {n} x {k}",
        program="samples/gemm.py",
        kernel="gemm",
        ours=ours,
        problem=lambda: _on_device().product(m, n, k, word, TL_GEMM),
        goal=goal,
    )


def _flash(dim: int, causal: bool, goal: float, tiles: tuple[str, ...]) -> Case:
    word = "causal" if causal else "full"
    return Case(
        name=f"attention_{word}_{dim}",
        title=f"attention fp16 (4, 32, 4096, {dim}) {word}",
        program="samples/flash_attention.py",
        kernel="flash_attention",
        ours=_numbered(tiles, f"dim={dim} causal={causal}"),
        problem=lambda: _on_device().attention(4, 32, 4096, dim, causal, tiles),
        goal=goal,
    )


def _row(name: str, given: str, tiles: tuple[str, ...], size: str) -> Case:
    return Case(
        name=name,
        title=f"{name} {size}",
        program=f"samples/{name}.py",
        kernel=name,
        ours=_numbered(tiles, given),
        problem=lambda: _on_device().rows(name, given, tiles[:1]),
        goal=1.0,
        ways=("flush",),
    )


NORMS = ("", "threads=512", "threads=128")
CASES: tuple[Case, ...] = (
    _gemm(8192, 8192, 8192, "bf16", 1.0),
    _gemm(8192, 8192, 8192, "fp16", 1.0, fixed=True),
    _gemm(4096, 4096, 4096, "fp16", 1.0, fixed=True),
    _gemm(4000, 4072, 4088, "fp16", 1.0),
    _gemm(4095, 4097, 4099, "fp16", 2.5),
    Case(
        name="gemm_bias_relu_8192",
        title="GEMM + bias + ReLU fp16 8192 x 8192 x 8192",
        program="samples/gemm_bias_relu.py",
        kernel="gemm_bias_relu",
        ours=_numbered(
            (WIDE, WIDE3, TALL, TALL3)
        ),  # tall ones load two values of the bias a thread
        problem=lambda: _on_device().layer(8192, 8192, 8192, (WIDE,)),
        goal=1.0,
    ),
    Case(
        name="gemm_fp8_8192",
        title="GEMM e4m3 8192 x 8192 x 8192, accurate",
        program="samples/fp8_gemm.py",
        kernel="fp8_gemm",
        ours=_numbered(FP8_ACCURATE),
        problem=lambda: _on_device().small_floats(8192, 8192, 8192, fast=False, tiles=()),
        goal=1.0,
    ),
    Case(
        name="gemm_fp8_fast_8192",
        title="GEMM e4m3 8192 x 8192 x 8192, fast accumulation",
        program="samples/fp8_gemm.py",
        kernel="fp8_gemm",
        ours=_numbered(FP8_TILES, "fast_accumulation=True"),
        problem=lambda: _on_device().small_floats(8192, 8192, 8192, fast=True, tiles=FP8_TILES),
        goal=1.0,
    ),
    Case(
        name="gemm_decode_16",
        title="GEMM fp16 16 x 8192 x 8192",
        program="samples/gemm.py",
        kernel="gemm",
        ours=_numbered((DEEP, SMALL_M[0])),
        problem=lambda: _on_device().product(16, 8192, 8192, "fp16", SMALL_M, "16 64 256 4 4"),
        goal=1.1,
        ways=("flush",),
    ),
    _flash(128, False, 1.0, FLASH),
    _flash(128, True, 1.0, FLASH),
    _flash(64, False, 0.95, FLASH_NARROW[False]),
    _flash(64, True, 0.95, FLASH_NARROW[True]),
    _flash(256, False, 0.95, FLASH_WIDE),
    _flash(256, True, 0.95, FLASH_WIDE),
    Case(
        name="conv2d",
        title="conv2d 3x3 fp16 (128, 64, 64, 128) to 128, channels last",
        program="samples/conv2d.py",
        kernel="conv2d",
        ours=_numbered(CONV[:2], "H=64 W=64 C=128 F=128"),
        problem=lambda: _on_device().convolution(128, 64, 64, 128, 128, CONV),
        goal=1.0,
    ),
    _row("rms_norm", "N=8192", NORMS, "fp16 16384 x 8192"),
    _row("layer_norm", "N=8192", NORMS, "fp16 16384 x 8192"),
    _row("softmax", "N=8192", NORMS, "fp16 16384 x 8192"),
    _row("row_sum", "", ("",), "fp32 16384 x 16384"),
    _row("column_sum", "", ("",), "fp32 16384 x 16384"),
    _row(
        "transpose_scale_bias",
        "",
        ("block_M=128 block_N=128 threads=512", ""),
        "fp16 16384 x 16384",
    ),
)
