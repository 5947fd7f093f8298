"""Public Ascend C kernels of the vendor, unchanged, in the functional model; expected values are NumPy's.

No text of theirs is here. Clone `asc-devkit` into the folder that TILE2C_VENDOR_SAMPLES names (see
test_vendor_samples.py); without it everything here is skipped. What follows the kernels in a file, the host
program, is left out, and so are headers of the host.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "emulate_ascendc"))
from model_harness import launch

FOLDER = Path(os.environ.get("TILE2C_VENDOR_SAMPLES", "nowhere")) / "asc-devkit/examples"
API = "01_simd_cpp_api"
HOST = re.compile(r"^(?:int32_t|int) main\(|^std::vector<float> kernel_", re.MULTILINE)
HEADERS = re.compile(r'^#include (?!"kernel_operator.h").*$', re.MULTILINE)
Array = np.ndarray[Any, Any]
f16, f32 = np.float16, np.float32


@dataclass(frozen=True)
class Sample:
    """One launch: `make` gives the arguments, which of them is the output, and what it holds then."""

    file: str
    kernel: str
    make: Callable[[np.random.Generator], tuple[list[Any], int, Array]]
    cores: int = 1
    scenario: int = 0
    checks: int = 3


def add(r: np.random.Generator) -> tuple[list[Any], int, Array]:
    x, y = (r.standard_normal(16384).astype(f32) for _ in range(2))
    return [x, y, np.zeros_like(x)], 2, x + y


def add_of_any_length(r: np.random.Generator) -> tuple[list[Any], int, Array]:
    given, output, want = add(r)
    return [*given, 16384], output, want


def product(r: np.random.Generator) -> tuple[list[Any], int, Array]:
    a, b = r.standard_normal((256, 64)).astype(f16), r.standard_normal((64, 256)).astype(f16)
    return [a, b, np.zeros((256, 256), f16)], 2, a.astype(f32) @ b.astype(f32)


def leaky_product(r: np.random.Generator) -> tuple[list[Any], int, Array]:
    a, b = r.standard_normal((512, 128)).astype(f16), r.standard_normal((128, 128)).astype(f16)
    sums = (a.astype(f32) @ b.astype(f32)).astype(f16).astype(f32)
    return [a, b, np.zeros((512, 128), f16)], 2, np.where(sums >= 0, sums, sums * 0.001)


def bytes_with_bias(r: np.random.Generator) -> tuple[list[Any], int, Array]:
    a, b = (r.integers(-8, 8, s).astype(np.int8) for s in ((30, 70), (70, 40)))
    bias = r.integers(-9, 9, 40).astype(np.int32)
    c = np.zeros((30, 40), np.int32)
    return [a, b, bias, c], 3, a.astype(f32) @ b.astype(f32) + bias


def floats_transposed(r: np.random.Generator) -> tuple[list[Any], int, Array]:
    a, b, bias = (r.standard_normal(s).astype(f32) for s in ((70, 30), (40, 70), (40,)))
    return [a, b, bias, np.zeros((30, 40), f32)], 3, a.T @ b.T + bias


def row_times_matrix(r: np.random.Generator) -> tuple[list[Any], int, Array]:
    a, b = r.standard_normal((1, 256)).astype(f16), r.standard_normal((32, 256)).astype(f16)
    return [a, b, np.zeros((1, 32), f32)], 2, a.astype(f32) @ b.astype(f32).T


def stored(change: Callable[[Array], Array]) -> Callable[..., tuple[list[Any], int, Array]]:
    def make(r: np.random.Generator) -> tuple[list[Any], int, Array]:
        a, b = r.standard_normal((128, 128)).astype(f16), r.standard_normal((128, 256)).astype(f16)
        halves = np.ascontiguousarray(a.reshape(128, 2, 64).transpose(1, 0, 2))
        want = change(a.astype(f32) @ b.astype(f32))
        return [halves, b, np.zeros((128, 256), f32), np.zeros(256, np.uint64)], 2, want

    return make


def fractals(x: Array) -> Array:
    return x.reshape(8, 16, 16, 16).transpose(2, 0, 1, 3).reshape(128, 256)


def spread(r: np.random.Generator) -> tuple[list[Any], int, Array]:
    x = np.arange(16).astype(np.uint16)
    return [x, np.zeros((16, 16), np.uint16)], 1, np.repeat(x[:, None], 16, 1)


def rounded_up(r: np.random.Generator) -> tuple[list[Any], int, Array]:
    x = (8 * r.standard_normal(512)).astype(f16)
    return [x, np.zeros(512, np.int32)], 1, np.ceil(x.astype(f32))


def square_turned(r: np.random.Generator) -> tuple[list[Any], int, Array]:
    x = r.standard_normal((16, 16)).astype(f16)
    return [x, np.zeros_like(x)], 1, x.T


def channels_last(r: np.random.Generator) -> tuple[list[Any], int, Array]:
    x = r.standard_normal((3, 3, 2, 8)).astype(f16)
    return [x, np.zeros((3, 2, 8, 3), f16)], 1, x.transpose(0, 2, 3, 1)


def channels_in_blocks(r: np.random.Generator) -> tuple[list[Any], int, Array]:
    x = r.standard_normal((2, 32, 16, 16)).astype(f16)
    want = x.reshape(2, 2, 16, 16, 16).transpose(0, 1, 3, 4, 2)
    return [x, np.zeros((2, 2, 16, 16, 16), f16)], 1, want


MATRIX = f"{API}/03_basic_api/03_matrix_compute"
VECTOR = f"{API}/03_basic_api/01_memory_vector_compute"
FIXPIPE = f"{MATRIX}/fixpipe_l0c2gm/fixpipe_l0c2gm.asc"
MMAD = f"{MATRIX}/mmad/mmad.asc"
TRANSPOSE = f"{VECTOR}/transpose/transpose.asc"
START = f"{API}/00_introduction"
SAMPLES = {
    "add": Sample(f"{START}/01_add/add/add.asc", "add_custom<2048>", add, 8),
    "add_queues": Sample(
        f"{START}/01_add/add_tpipe_tque/add_tpipe_tque.asc", "add_custom", add_of_any_length, 8
    ),
    "matmul": Sample(
        f"{START}/02_matrix/matmul_basic_api/matmul_basic_api.asc",
        "mmad_custom<256, 64, 256, 128, 128, 64, 256>",
        product,
        2,
    ),
    "matmul_leakyrelu": Sample(
        f"{START}/03_fusion_operation/matmul_leakyrelu_basic_api/matmul_leakyrelu_basic_api.asc",
        "mmad_vec_custom<512, 128, 128, 256, 128, 128, 256, 128, 128>",
        leaky_product,
        2,
    ),
    "mmad_bytes": Sample(MMAD, "mmad_custom<30, 40, 70>", bytes_with_bias, scenario=1),
    "mmad_floats": Sample(MMAD, "mmad_custom<30, 40, 70>", floats_transposed, scenario=3),
    "mmad_gemv": Sample(
        f"{MATRIX}/mmad_gemv/mmad_gemv.asc", "mmad_custom<32, 256>", row_times_matrix
    ),
    "fixpipe_fractals": Sample(
        FIXPIPE, "fixpipe_l0c2gm<128, 128, 256>", stored(fractals), scenario=1
    ),
    "fixpipe_rows": Sample(
        FIXPIPE, "fixpipe_l0c2gm<128, 128, 256>", stored(lambda x: x), scenario=2
    ),
    "fixpipe_relu": Sample(
        FIXPIPE, "fixpipe_l0c2gm<128, 128, 256>", stored(lambda x: np.maximum(x, 0)), scenario=6
    ),
    "brcb": Sample(f"{VECTOR}/brcb/brcb.asc", "brcb_custom", spread),
    "transpose": Sample(
        TRANSPOSE, "transpose_custom<256, 1, 1, 16, 16>", square_turned, scenario=1
    ),
    "transpose_channels": Sample(
        TRANSPOSE, "transpose_custom<144, 3, 3, 2, 8>", channels_last, scenario=2
    ),
    "transpose_blocks": Sample(
        TRANSPOSE, "transpose_custom<16384, 2, 32, 16, 16>", channels_in_blocks, scenario=3
    ),
    "cast": Sample(f"{VECTOR}/cast/cast.asc", "cast_custom<512, 512, 128>", rounded_up, scenario=1),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_vendor_kernel_runs_unchanged(name: str) -> None:
    sample = SAMPLES[name]
    path = FOLDER / sample.file
    if not path.exists():
        pytest.skip("asc-devkit is not cloned")
    text = path.read_text()
    host = HOST.search(text)
    text = HEADERS.sub("", text[: host.start() if host else None])
    text = f"#define SCENARIO_NUM {sample.scenario}\n{text}"
    given, output, want = sample.make(np.random.default_rng(1))
    outcome = launch(text, sample.kernel, given, [output], cores=sample.cores, checks=sample.checks)
    assert outcome.kind == "none", outcome.text
    scale = max(1.0, float(np.abs(want).max()))
    got = given[output].astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3 * scale)


def test_small_products_that_follow_each_other_want_a_barrier() -> None:
    """The vendor's own sample leaves it out where its documentation asks for it."""
    path = FOLDER / MMAD
    if not path.exists():
        pytest.skip("asc-devkit is not cloned")
    text = path.read_text()
    text = HEADERS.sub("", text[: HOST.search(text).start()])  # type: ignore[union-attr]
    given = [np.zeros((30, 70), np.uint16), np.zeros((40, 70), np.uint16)]
    given += [np.zeros(40, f32), np.zeros((30, 40), f32)]
    text = f"#define SCENARIO_NUM 2\n{text}"
    outcome = launch(text, "mmad_custom<30, 40, 70>", given, [3], checks=3)
    assert outcome.kind == "race"
    assert "no PipeBarrier is between them" in outcome.text
