"""Rivals of bench/hopper.py beside torch's own functions: TileLang, Triton, torch.compile, attention."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

Launch = Callable[[], Any]
ROOT = Path(__file__).parents[1]


def values_of(given: str) -> dict[str, Any]:
    """`block_M=128 dtype=float16` as keyword arguments."""
    found: dict[str, Any] = {}
    for word in given.split():
        name, _, text = word.partition("=")
        try:
            found[name] = ast.literal_eval(text)
        except ValueError:
            found[name] = text
    return found


def tilelang_program(
    path: str, name: str, sizes: tuple[int, ...], given: str, arguments: tuple[Any, ...]
) -> Launch:
    """A launch of the tile program as TileLang compiles it, its sizes known. It keeps what it compiles."""
    program = runpy.run_path(str(ROOT / path))[name]
    kernel = program(*sizes, **values_of(given))
    return lambda: kernel(*arguments)


def sdpa(backend: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> Launch:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    chosen = getattr(SDPBackend, backend)

    def launch() -> torch.Tensor:
        with sdpa_kernel(chosen):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return launch


def compiled(call: Callable[..., Any], *inputs: torch.Tensor) -> Launch:
    fast = torch.compile(call, dynamic=False)
    fast(*inputs)
    return lambda: fast(*inputs)


def triton_gemm(
    a: torch.Tensor, b: torch.Tensor, bm: int, bn: int, bk: int, warps: int, stages: int
) -> Launch:
    """C = A @ B with pointers, blocks in groups of eight rows."""
    from hopper_triton import gemm

    return gemm(a, b, bm, bn, bk, warps, stages)
