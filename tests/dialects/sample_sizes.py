"""Every sample at a small size with tails: values of its parameters, shapes of its inputs.

Small extents keep a run in the emulator short, and let the tiles fit chips with little shared memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

F16, F32, I8, I32, F8 = "float16", "float32", "int8", "int32", "float8_e4m3"
Spec = tuple[tuple[int, ...], str]


@dataclass(frozen=True)
class Small:
    """Values for `-D`, and the kernel's inputs."""

    choices: dict[str, object]
    inputs: tuple[Spec, ...] = ()
    made: Callable[[np.random.Generator], list[Any]] | None = None  # in place of `inputs`

    def arrays(self, float8: str) -> list[Any]:
        """The inputs; `float8` is the 8-bit float of the chip."""
        rng = np.random.default_rng(7)
        if self.made is not None:
            return self.made(rng)
        return [
            _random(rng, shape, float8 if dtype == F8 else dtype) for shape, dtype in self.inputs
        ]


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    if dtype == I8:
        return rng.integers(-128, 128, shape, np.int8)
    values = rng.standard_normal(shape)
    return values.astype(getattr(ml_dtypes, dtype) if dtype.startswith("float8") else dtype)


def _sequences(rng: np.random.Generator) -> list[Any]:
    """Four sequences one after the other, one of them empty, and how long the longest is."""
    lengths = (70, 1, 0, 37)
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(I32)
    tensors = [_random(rng, (sum(lengths), 2, 32), F16) for _ in range(3)]
    return [*tensors, starts, np.int32(max(lengths))]


TILE = {"block_M": 64, "block_N": 64}
ATTENTION = {"dim": 32, "block_M": 64, "block_N": 32}
SMALL: dict[str, Small] = {
    "add": Small({}, (((2051,), F32), ((2051,), F32))),
    "row_sum": Small({}, (((9, 513), F32),)),
    "column_sum": Small({}, (((129, 33), F32),)),
    "softmax": Small({"N": 333}, (((5, 333), F16),)),
    "online_softmax": Small({"block_N": 256}, (((3, 777), F16),)),
    "rms_norm": Small({"N": 333}, (((5, 333), F16), ((333,), F16))),
    "layer_norm": Small({"N": 333}, (((5, 333), F16), ((333,), F16), ((333,), F16))),
    "transpose_scale_bias": Small({}, (((65, 131), F16), ((131,), F16))),
    "gemv": Small({}, (((5, 1111), F16), ((1111,), F16))),
    "cumsum": Small({}, (((3, 1027), F32),)),
    "quantize_fp8": Small({}, (((3, 333), F16),)),
    "top_k": Small({"N": 67, "k": 3}, (((5, 67), F32),)),
    "gemm": Small(TILE, (((65, 69), F16), ((69, 72), F16))),
    "gemm_warp_specialized": Small(
        {"block_N": 64, "block_K": 32}, (((130, 72), F16), ((72, 72), F16))
    ),
    "gemm_bias_relu": Small(TILE, (((65, 69), F16), ((69, 67), F16), ((67,), F16))),
    "fp8_gemm": Small(TILE | {"block_K": 64, "threads": 128}, (((65, 133), F8), ((67, 133), F8))),
    "batched_gemm": Small(TILE, (((2, 65, 40), F16), ((2, 40, 67), F16))),
    "split_k_gemm": Small(
        TILE | {"split_k": 3}, (((65, 133), F16), ((133, 72), F16), ((65, 72), F32))
    ),
    "int4_gemm": Small({"group_size": 64}, (((3, 98), F16), ((67, 49), I8), ((2, 67), F16))),
    "conv2d": Small(
        TILE | {"H": 7, "W": 9, "C": 12, "F": 21}, (((2, 7, 9, 12), F16), ((3, 3, 12, 21), F16))
    ),
    "flash_attention": Small(
        ATTENTION, (((1, 2, 66, 32), F16), ((1, 2, 100, 32), F16), ((1, 2, 100, 32), F16))
    ),
    "gqa_attention": Small(
        ATTENTION | {"groups": 2},
        (((1, 67, 4, 32), F16), ((1, 67, 2, 32), F16), ((1, 67, 2, 32), F16)),
    ),
    "varlen_attention": Small(ATTENTION, made=_sequences),
}
