"""Public kernels of the vendors, unchanged, in the functional models; the expected values are NumPy's.

No text of theirs is here. Clone the repositories named in `SOURCES` side by side, name that folder, and:

    TILE2C_VENDOR_SAMPLES=FOLDER pytest tests/vendor_samples

What has not been cloned is skipped. `python -m tile2c.runtime.emulate` runs any other.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile2c.runtime.emulate import Argument, TensorArgument, ValueArgument, load_program

FOLDER = Path(os.environ.get("TILE2C_VENDOR_SAMPLES", "nowhere"))
SOURCES = {  # folder of the clone: where it is public
    "rocm-examples": "ROCm/rocm-examples",
    "tutorial_on_musa": "MooreThreads/tutorial_on_musa",
    "maca-samples": "MetaX-MACA/maca-samples",
    "hggc-samples": "t-head/hggc-samples",
    "iluvatar-corex-ixrt": "Deep-Spark/iluvatar-corex-ixrt",
}
Array = np.ndarray[Any, Any]
Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Sample:
    """One launch: what the kernel gets, in its parameters' order, and what the arrays hold afterwards."""

    file: str
    kernel: str
    grid: Triple
    block: Triple
    arguments: Callable[[], list[Any]]  # arrays, NumPy scalars, bytes of a struct
    expected: Callable[[list[Any]], dict[int, Array]]  # by number of the argument
    shared: int = 0
    near: float = 1e-5


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def whole(low: int, high: int, *shape: int, kind: str = "int32") -> Array:
    return np.random.default_rng(1).integers(low, high, shape).astype(kind)


f32, i32, u32, u64 = np.float32, np.int32, np.uint32, np.uint64
bf16 = ml_dtypes.bfloat16
_HIP = "rocm-examples/HIP-Basic"
_MUSA = "tutorial_on_musa"
_MACA = "maca-samples/0_Introduction"
_PPU = "hggc-samples/Samples"
_COREX = "iluvatar-corex-ixrt/samples/plugins/src"


def prefix_sums(x: list[Any]) -> dict[int, Array]:
    return {0: np.cumsum(x[0], dtype=np.float64)}


def reduced(x: list[Any]) -> dict[int, Array]:
    padded = np.zeros(79 * 128, np.float64)
    padded[: x[0].size] = x[0]
    return {1: padded.reshape(79, 128).sum(1)}


def focal(x: list[Any]) -> dict[int, Array]:
    logits, targets, gamma, alpha = x[1].astype(np.float64), x[2], float(x[4]), float(x[5])
    p = 1 / (1 + np.exp(-logits))
    hit = targets[:, None] == np.arange(1, logits.shape[1] + 1)
    other = (targets[:, None] >= 0) & ~hit
    positive = np.where(hit, (1 - p) ** gamma * np.log(p) * alpha, 0)
    return {7: -positive - np.where(other, p**gamma * np.log(1 - p) * (1 - alpha), 0)}


def decoded(x: list[Any]) -> dict[int, Array]:
    classes, box, chance, stride = x[1], x[2], x[3], int(x[7])
    rows, columns = np.mgrid[0:8, 0:16]
    cx, cy = (box[0] + columns) * stride, (box[1] + rows) * stride
    w, h = np.exp(box[2]) * stride, np.exp(box[3]) * stride
    corners = np.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2])
    return {4: corners, 5: classes * chance[None]}


def ready_to_sort(x: list[Any]) -> dict[int, Array]:
    """Scores above the threshold, shifted by one, with their place; the background and the rest are out."""
    scores = x[5]
    taken = scores > 0.5
    taken[:, 0] = False
    places = np.arange(240).reshape(2, 3, 40)
    offsets = np.arange(7) * 40
    kept = np.where(taken, np.minimum(scores + 1, 2 - 1 / 1024), 1)
    return {6: kept, 8: np.where(taken, places, -1), 9: offsets}


def gathered(x: list[Any]) -> dict[int, Array]:
    index, scores, boxes = x[6], x[7], x[8]
    found = index >= 0
    at = index % 40
    return {
        9: np.array([found.sum()]),
        10: np.where(found[:, None], np.clip(boxes[:, at].T, 0, 1), 0),
        11: np.where(found, scores - 0.5, 0),
        12: np.where(found, index % 120 // 40, -1),
    }


HIP = [
    Sample(f"{_HIP}/matrix_multiplication/main.hip", "matrix_multiplication_kernel<16>", (4, 4, 1),
           (16, 16, 1), lambda: [drawn(64, 64), drawn(64, 64, seed=1), drawn(64, 64), u32(64)],
           lambda x: {2: x[0] @ x[1]}, near=1e-4),
    Sample(f"{_HIP}/saxpy/main.hip", "saxpy_kernel", (4, 1, 1), (256, 1, 1),
           lambda: [f32(2), drawn(1000), drawn(1000, seed=1), u32(1000)],
           lambda x: {2: 2 * x[1] + x[2]}),
    Sample(f"{_HIP}/warp_shuffle/main.hip", "matrix_transpose_kernel", (1, 1, 1), (4, 4, 1),
           lambda: [drawn(4, 4), drawn(4, 4, seed=1), u32(4)], lambda x: {0: x[1].T}),
    Sample(f"{_HIP}/bit_extract/main.hip", "bit_extract_kernel", (2, 1, 1), (256, 1, 1),
           lambda: [whole(0, 9, 1000, kind="uint32"), whole(0, 2**31, 1000, kind="uint32"), u64(1000)],
           lambda x: {0: x[1] >> 8 & 15}),
    Sample("rocm-examples/Applications/histogram/main.hip", "histogram256_block", (2, 1, 1), (128, 1, 1),
           lambda: [whole(0, 256, 2, 128 * 16, kind="uint8"), np.zeros((2, 256), u32), i32(16)],
           lambda x: {1: np.stack([np.bincount(row, minlength=256) for row in x[0]])},
           shared=256 * 128),
    Sample("rocm-examples/Applications/prefix_sum/main.hip", "block_prefix_sum", (1, 1, 1), (64, 1, 1),
           lambda: [drawn(128), i32(128), i32(1)], prefix_sums, shared=128 * 4, near=1e-4),
]  # fmt: skip
MUSA = [
    Sample(f"{_MUSA}/musa_quick_start/0_example_mul/main.mu", "func_kernel", (1, 1, 1), (4, 1, 1),
           lambda: [drawn(4), drawn(4, seed=1), f32(2)], lambda x: {1: 2 * x[0]}),
    Sample(f"{_MUSA}/musa_quick_start/4_reduce_demo/reduce_shared_memory.mu", "reduce_shared", (79, 1, 1),
           (128, 1, 1), lambda: [drawn(10000), np.zeros(79, f32)], reduced, near=1e-4),
    Sample(f"{_MUSA}/musa_quick_start/4_reduce_demo/reduce_shared_memory.mu", "reduce_dynamic",
           (79, 1, 1), (128, 1, 1), lambda: [drawn(10000), np.zeros(79, f32)], reduced,
           shared=512, near=1e-4),
    Sample(f"{_MUSA}/pytorch/cv/maskrcnn/maskrcnn_benchmark/csrc/musa/SigmoidFocalLoss.mu",
           "SigmoidFocalLossForward<float>", (2, 1, 1), (128, 1, 1),
           lambda: [i32(20 * 30), drawn(20, 30), whole(0, 31, 20), i32(30), f32(2), f32(0.25), i32(20),
                    np.zeros((20, 30), f32)],
           focal, near=1e-4),
]  # fmt: skip
MACA = [
    Sample(f"{_MACA}/vectorAdd_mcrtc/vectorAdd_kernel.maca", "vectorAdd", (4, 1, 1), (256, 1, 1),
           lambda: [drawn(1000), drawn(1000, seed=1), drawn(1000), i32(1000)],
           lambda x: {2: x[0] + x[1]}),
    Sample(f"{_MACA}/vectorAdd/vectorAdd.cpp", "vectorAdd", (4, 1, 1), (256, 1, 1),
           lambda: [drawn(1000), drawn(1000, seed=1), drawn(1000), i32(1000)],
           lambda x: {2: x[0] + x[1]}),
    Sample(f"{_MACA}/asyncExec/asyncExec.cpp", "kernel_add<float>", (4, 1, 1), (256, 1, 1),
           lambda: [drawn(1000), i32(1000), f32(3)], lambda x: {0: x[0] + 3}),
    Sample(f"{_MACA}/sharedMemory/sharedMemory.cpp", "MatMulKernel_WithSharedMemory", (4, 4, 1),
           (16, 16, 1), lambda: [Matrix(drawn(64, 64)), Matrix(drawn(64, 64, seed=1)),
                                 Matrix(np.zeros((64, 64), f32))],
           lambda x: {2: x[0].array @ x[1].array}, near=1e-4),
]  # fmt: skip
PPU = [
    Sample(f"{_PPU}/0_Introduction/vector_add/driver_api_kernel.hg", "weighted_sum_kernel", (4, 1, 1),
           (256, 1, 1), lambda: [drawn(1000), drawn(1000, seed=1), drawn(1000), i32(1000), f32(2), f32(3),
                                 f32(4)],
           lambda x: {2: 2 * x[0] + 3 * x[1] + 4}),
    Sample(f"{_PPU}/3_HGGC_Features/bf16_tensor_cell_gemm/tix_tc_gemm.hg", "tix_tc_gemm_kernel",
           (4, 4, 1), (32, 1, 1),
           lambda: [drawn(64, 64).astype(bf16), drawn(64, 64, seed=1).astype(bf16), np.zeros((64, 64), f32),
                    i32(64), i32(64), i32(64)],
           lambda x: {2: x[0].astype(f32) @ x[1].astype(f32)}, near=1e-4),
    Sample(f"{_PPU}/3_HGGC_Features/imma_tensor_cell_gemm/tix_tc_gemm_int8.hg",
           "tix_tc_gemm_int8_kernel", (4, 4, 1), (32, 1, 1),
           lambda: [whole(-128, 128, 64, 64, kind="int8"), whole(-128, 128, 64, 64, kind="int8"),
                    np.zeros((64, 64), i32), i32(64), i32(64), i32(64)],
           lambda x: {2: x[0].astype(i32) @ x[1].astype(i32)}),
]  # fmt: skip
COREX = [
    Sample(f"{_COREX}/yoloxDecodePlugin/yoloxDecodeKernel.cu", "YoloxDecoderForward<float>", (2, 1, 1),
           (64, 1, 1),
           lambda: [i32(128), drawn(5, 8, 16), drawn(4, 8, 16, seed=1), drawn(8, 16, seed=2),
                    np.zeros((4, 8, 16), f32), np.zeros((5, 8, 16), f32), i32(5), i32(8), i32(8), i32(16)],
           decoded, near=1e-4),
    Sample(f"{_COREX}/nmsPlugin/sortScoresPerClass.cu", "prepareSortData<float,256>", (1, 1, 1), (256, 1, 1),
           lambda: [i32(2), i32(3), i32(40), i32(0), f32(0.5), np.abs(drawn(2, 3, 40)) % 1,
                    np.zeros((2, 3, 40), f32), f32(1), np.zeros((2, 3, 40), i32), np.zeros(7, i32)],
           ready_to_sort),
    Sample(f"{_COREX}/nmsPlugin/gatherNMSOutputs.cu", "gatherNMSOutputs_kernel<float,float,32>", (2, 1, 1),
           (32, 1, 1),
           lambda: [np.bool_(True), i32(1), i32(40), i32(3), i32(20), i32(20),
                    whole(-1, 120, 20), drawn(20), drawn(4, 40), np.zeros(1, f32), np.zeros((20, 4), f32),
                    np.zeros(20, f32), np.zeros(20, f32), np.bool_(True), f32(0.5)],
           gathered),
]  # fmt: skip


@dataclass(frozen=True)
class Matrix:
    """MACA's sample passes width, height, pitch and address in one struct."""

    array: Array

    def data(self) -> bytes:
        height, width = self.array.shape
        words = np.array([width, height, width, 0], i32).tobytes()
        return words + self.array.ctypes.data.to_bytes(8, "little")


CASES = [
    *(("hip:gfx942", case) for case in HIP),
    *(("hip:gfx1100", case) for case in HIP),
    *(("dcu:gfx936", case) for case in HIP),
    *((target, case) for target in ("musa:mp_22", "musa:mp_31") for case in MUSA),
    *(("maca:xcore1000", case) for case in MACA),
    *(("ppu:ppu_10", case) for case in PPU),
    *(("corex:ivcore11", case) for case in COREX),
]


def passed(value: Any, number: int) -> Argument:
    if isinstance(value, Matrix):
        inner = value.array
        tensor = TensorArgument(f"matrix {number}", inner.ctypes.data, inner.nbytes, True, inner)
        return ValueArgument(value.data(), tensor)
    if isinstance(value, np.ndarray):
        return TensorArgument(f"argument {number}", value.ctypes.data, value.nbytes, True, value)
    return ValueArgument(value.tobytes())


@pytest.mark.parametrize(
    ("target", "sample"),
    CASES,
    ids=lambda x: x if isinstance(x, str) else f"{Path(x.file).stem}-{x.kernel}",
)
def test_a_public_kernel_unchanged(target: str, sample: Sample) -> None:
    path = FOLDER / sample.file
    if not path.is_file():
        pytest.skip(f"{SOURCES[sample.file.partition('/')[0]]} is not in TILE2C_VENDOR_SAMPLES")
    family, _, arch = target.partition(":")
    module = load_program(
        path,
        family=family,
        arch=arch,
        kernels=(sample.kernel,),
        checks=frozenset({"races", "memory"}),
    )
    given = sample.arguments()
    wanted = sample.expected(given)
    arguments = [passed(value, number) for number, value in enumerate(given)]
    module.launch(sample.kernel, sample.grid, sample.block, sample.shared, arguments)
    for number, values in wanted.items():
        got = given[number].array if isinstance(given[number], Matrix) else given[number]
        np.testing.assert_allclose(got, values, rtol=sample.near, atol=sample.near)
