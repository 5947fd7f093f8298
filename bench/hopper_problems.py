"""Data, meaning and rivals of the operations that bench/hopper.py measures; needs torch and a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from hopper_rivals import compiled, sdpa, tilelang_program, triton_gemm

Launch = Callable[[], Any]
Make = Callable[[], Launch]
HALF, BF16, FP8 = torch.float16, torch.bfloat16, torch.float8_e4m3fn


def _whole(x: torch.Tensor) -> torch.Tensor:
    return x


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Data on the device: what a kernel is given, what it has to give back (or a part of that)."""

    arguments: tuple[Any, ...]
    expected: Callable[[], torch.Tensor]
    part: Callable[[torch.Tensor], torch.Tensor] = _whole  # of an output, that `expected` gives
    rivals: Mapping[str, Make] = field(default_factory=dict)
    flops: float = 0.0
    bytes: float = 0.0
    bound: float = 2e-3  # relative error


def normal(*shape: int, dtype: torch.dtype = HALF) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


# ---- products


def product(
    m: int,
    n: int,
    k: int,
    word: str,
    tiles: tuple[str, ...],
    triton: str = "128 256 64 8 3",
) -> Problem:
    """C = A @ B with both row-major."""
    dtype = BF16 if word == "bf16" else HALF
    a, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
    out = torch.empty(m, n, device="cuda", dtype=dtype)
    rivals: dict[str, Make] = {"cuBLAS": lambda: lambda: torch.mm(a, b, out=out)}
    for setting in tiles:
        given = f"{setting} dtype={'bfloat16' if dtype == BF16 else 'float16'}"
        rivals[f"TileLang {setting}"] = lambda given=given: tilelang_program(
            "samples/gemm.py", "gemm", (m, n, k), given, (a, b)
        )
    if triton:
        rivals["Triton"] = lambda: triton_gemm(a, b, *map(int, triton.split()))
    rows = min(m, 256)
    return Problem(
        arguments=(a, b),
        expected=lambda: a[:rows].float() @ b.float(),
        part=lambda x: x[:rows],
        rivals=rivals,
        flops=2.0 * m * n * k,
        bytes=2.0 * (m * k + k * n + m * n) if m <= 64 else 0.0,
        bound=4e-3 if dtype == BF16 else 1e-3,
    )


def layer(m: int, n: int, k: int, tiles: tuple[str, ...]) -> Problem:
    """relu(A @ B + bias)"""
    a, b, bias = normal(m, k), normal(k, n), normal(n)
    out = torch.empty(m, n, device="cuda", dtype=HALF)
    rivals: dict[str, Make] = {
        "cuBLAS _addmm_activation": lambda: lambda: torch._addmm_activation(bias, a, b, out=out),
        "torch.compile": lambda: compiled(
            lambda a, b, c: torch.relu(torch.addmm(c, a, b)), a, b, bias
        ),
    }
    for setting in tiles:
        rivals[f"TileLang {setting}"] = lambda setting=setting: tilelang_program(
            "samples/gemm_bias_relu.py", "gemm_bias_relu", (m, n, k), setting, (a, b, bias)
        )
    return Problem(
        arguments=(a, b, bias),
        expected=lambda: torch.relu(a[:256].float() @ b.float() + bias.float()),
        part=lambda x: x[:256],
        rivals=rivals,
        flops=2.0 * m * n * k,
        bound=1e-3,
    )


def small_floats(m: int, n: int, k: int, *, fast: bool, tiles: tuple[str, ...]) -> Problem:
    """A @ B^T in e4m3: accurate against accurate, fast against fast (TileLang's is fast)."""
    a, b = normal(m, k, dtype=torch.float32).to(FP8), normal(n, k, dtype=torch.float32).to(FP8)
    one = torch.ones((), device="cuda")

    def library() -> torch.Tensor:
        return torch._scaled_mm(a, b.T, one, one, out_dtype=HALF, use_fast_accum=fast)

    rivals: dict[str, Make] = {"cuBLAS _scaled_mm": lambda: library}
    for setting in tiles if fast else ():
        rivals[f"TileLang {setting}"] = lambda setting=setting: tilelang_program(
            "samples/fp8_gemm.py", "fp8_gemm", (m, n, k), setting, (a, b)
        )
    return Problem(
        arguments=(a, b),
        expected=lambda: a[:256].float() @ b.float().T,
        part=lambda x: x[:256],
        rivals=rivals,
        flops=2.0 * m * n * k,
        bound=5e-3 if fast else 6e-4,
    )


# ---- attention and convolution


def attention(
    batch: int, heads: int, length: int, dim: int, causal: bool, tiles: tuple[str, ...]
) -> Problem:
    """[batch, heads, length, dim]; half of the products counted for the causal one."""
    q, k, v = (normal(batch, heads, length, dim) for _ in range(3))
    flat = tuple(x.transpose(1, 2).contiguous() for x in (q, k, v))
    rivals: dict[str, Make] = {
        "cuDNN": lambda: sdpa("CUDNN_ATTENTION", q, k, v, causal),
        "FlashAttention-2": lambda: sdpa("FLASH_ATTENTION", q, k, v, causal),
    }
    for setting in tiles:
        given = f"dim={dim} causal={causal} {setting}"
        rivals[f"TileLang {setting}"] = lambda given=given: tilelang_program(
            "samples/flash_attention.py", "flash_attention", (), given, (q, k, v)
        )
        rivals[f"TileLang, masks by values, {setting}"] = lambda given=given: tilelang_program(
            "tests/lower/programs/attention.py", "attention", (), given, flat
        )
    return Problem(
        arguments=(q, k, v),
        expected=lambda: F.scaled_dot_product_attention(
            *(x[:1, :2].float() for x in (q, k, v)), is_causal=causal
        ),
        part=lambda x: (x if x.shape[1] == heads else x.transpose(1, 2))[:1, :2],
        rivals=rivals,
        flops=(2.0 if causal else 4.0) * batch * heads * length * length * dim,
    )


def convolution(n: int, h: int, w: int, c: int, f: int, tiles: tuple[str, ...]) -> Problem:
    """3x3, stride 1, padding 1, channels last."""
    data, kernel = normal(n, h, w, c), normal(3, 3, c, f)
    images = data.permute(0, 3, 1, 2)
    weights = kernel.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    torch.backends.cudnn.benchmark = True
    rivals: dict[str, Make] = {
        "cuDNN": lambda: lambda: torch.conv2d(images, weights, padding=1),
    }
    for setting in tiles:
        rivals[f"TileLang {setting}"] = lambda setting=setting: tilelang_program(
            "samples/conv2d.py", "conv2d", (h, w, c, f), setting, (data, kernel)
        )
    return Problem(
        arguments=(data, kernel),
        expected=lambda: torch.conv2d(images[:4].float(), weights.float(), padding=1),
        part=lambda x: (x if x.shape[1] == f else x.permute(0, 3, 1, 2))[:4],
        rivals=rivals,
        flops=2.0 * n * h * w * 9 * c * f,
    )


# ---- rows


def rows(program: str, given: str, tiles: tuple[str, ...]) -> Problem:
    """Bound by memory: the rivals are torch, torch.compile, TileLang and a copy of as many bytes."""
    meaning, tensors, bound = ROWS[program]
    inputs = tensors()
    out = meaning(*inputs)
    total = sum(x.numel() * x.element_size() for x in (*inputs, out))
    source = torch.ones(total // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    rivals: dict[str, Make] = {
        "copy": lambda: lambda: target.copy_(source),
        "torch": lambda: lambda: meaning(*inputs),
        "torch.compile": lambda: compiled(meaning, *inputs),
    }
    for setting in tiles:
        values = f"{given} {setting}".strip()
        rivals[f"TileLang {setting}"] = lambda values=values: tilelang_program(
            f"samples/{program}.py", program, (), values, inputs
        )
    turned = program == "transpose_scale_bias"
    few = slice(0, 512 if program != "column_sum" else None)
    return Problem(
        arguments=inputs,
        expected=lambda: meaning(
            *(x[few].double() if x.dim() == 2 else x.double() for x in inputs)
        ),
        part=lambda x: x[:, few] if turned else x[few],
        rivals=rivals,
        bytes=float(total),
        bound=bound,
    )


def _rms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, x.shape[1:], w, 1e-6)


def _layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[1:], w, b, 1e-5)


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, 1)


def _turned(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (x * 0.5 + b).T.contiguous()


def _wide() -> tuple[torch.Tensor, ...]:
    return (normal(16384, 16384, dtype=torch.float32),)


Meaning = Callable[..., torch.Tensor]
Tensors = Callable[[], tuple[torch.Tensor, ...]]
ROWS: dict[str, tuple[Meaning, Tensors, float]] = {
    "rms_norm": (_rms, lambda: (normal(16384, 8192), normal(8192)), 1e-3),
    "layer_norm": (
        _layer_norm,
        lambda: (normal(16384, 8192), normal(8192), normal(8192)),
        1e-3,
    ),
    "softmax": (_softmax, lambda: (normal(16384, 8192),), 1e-3),
    "row_sum": (lambda x: x.sum(1), _wide, 1e-5),
    "column_sum": (lambda x: x.sum(0), _wide, 1e-5),
    "transpose_scale_bias": (_turned, lambda: (normal(16384, 16384), normal(16384)), 1e-3),
}
