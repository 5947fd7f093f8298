"""Tile programs for the Hopper path: build one, run it in the emulator, say what it should give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import tile2c

PROGRAMS = Path(__file__).parent / "programs" / "products.py"
TARGET = "cuda:sm_90a"
TYPES = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
    "int8": np.int8, "uint8": np.uint8,
}  # fmt: skip
Defines = Mapping[str, object]

ORDERS = (
    "__syncthreads", "barriers_visible", "barrier_wait", "barrier_expect", "barrier_arrive", "mma_begin",
    "mma_commit", "mma_wait", "consumers_sync", "publish_to_async", "warpgroup_sync", "tma_store_commit",
    "tma_store_wait_read", "ring.advance", "cluster_arrive", "cluster_wait", "barrier_arrive_at",
)  # fmt: skip
CALL = re.compile(rf"({'|'.join(map(re.escape, ORDERS))})(<\w+>)?\(")


def build(folder: Path, kernel: str, defines: Defines) -> str:
    """Writes the kernel's text to the folder and returns it."""
    tile2c.build(PROGRAMS, folder, TARGET, dict(defines), (kernel,), backend="emulate", force=True)
    return text_of(folder).read_text()


def text_of(folder: Path) -> Path:
    (path,) = folder.glob("*.cu")
    return path


def inputs(kernel: str, defines: Defines, m: int, n: int, k: int, seed: int = 0) -> list[Any]:
    """Operands for the sizes, of the type and the majors that the defines ask for."""
    rng = np.random.default_rng(seed)
    kinds = [TYPES[str(defines.get("dtype", "float16"))]]
    kinds.append(TYPES[str(defines["b_dtype"])] if "b_dtype" in defines else kinds[0])
    a = (k, m) if defines.get("trans_A") else (m, k)
    b = (n, k) if defines.get("trans_B") else (k, n)
    shapes = [a, b, b] if kernel == "gated" else [a, b]
    if kernel == "batched":
        shapes = [(2, *shape) for shape in shapes]
    if kernel == "scaled":
        shapes, kinds = [(m, k), (n, k)], [TYPES["float8_e4m3fn"]] * 2
        steps = -(-k // 128)
        scales = [rng.random(x, np.float32) + 0.5 for x in ((m, steps), (-(-n // 64), steps))]
        return [_random(rng, x, y) for x, y in zip(shapes, kinds, strict=True)] + scales
    return [_random(rng, shape, kinds[min(at, 1)]) for at, shape in enumerate(shapes)]


def _random(rng: np.random.Generator, shape: tuple[int, ...], kind: Any) -> Any:
    if np.dtype(kind).kind in "iu":
        limits = np.iinfo(kind)
        return rng.integers(limits.min, limits.max + 1, shape).astype(kind)
    return rng.standard_normal(shape).astype(kind)


def expected(kernel: str, defines: Defines, operands: list[Any]) -> Any:
    """The result in float64."""
    a, b, *more = (x.astype(np.float64) for x in operands)
    a = a.T if defines.get("trans_A") else a
    b = b.T if defines.get("trans_B") else b
    if kernel == "scaled":
        first, second = (np.repeat(x, 128, axis=1)[:, : a.shape[1]] for x in more)
        return (a * first) @ (b * np.repeat(second, 64, axis=0)[: len(b)]).T
    if kernel == "gated":
        return (a @ b) * np.maximum(a @ more[0], 0)
    if kernel == "decayed":
        total, step = np.zeros((a.shape[0], b.shape[1])), int(str(defines.get("block_K", 32)))
        for first in range(0, a.shape[1], step):
            total = (total + a[:, first : first + step] @ b[first : first + step]) * 0.5
        return total
    product = a @ b
    if kernel == "in_two":
        product[:, 0] = 0
    return product


def right(folder: Path, kernel: str, defines: Defines, operands: list[Any]) -> bool:
    """Whether the folder's text gives the right numbers; KernelError where a check finds more."""
    (found,) = tile2c.load(folder, "emulate", target=TARGET, check="races,memory").values()
    got = np.asarray(found(*operands)).astype(np.float64)
    want = expected(kernel, defines, operands)
    bound = 2e-2 if "bfloat16" in defines.values() else 4e-3
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    return got.shape == want.shape and bool(np.allclose(got, want, rtol=bound, atol=bound * scale))


def mutants(text: str, *, clusters: bool = False) -> Iterator[tuple[str, str]]:
    """(what is missing, the text without it), for what the first entry does.

    Without `clusters` what only blocks of clusters do stays as it is.
    """
    lines = text.split("\n")
    heads = ("_block(", "__launch_bounds__")  # a function that entries share comes before them
    first = next(k for k, line in enumerate(lines) if any(head in line for head in heads))
    last = next(k for k in range(first, len(lines)) if lines[k] == "}")
    others = set() if clusters else _of_clusters(lines)
    for k in sorted(set(range(first, last)) - others):
        call = CALL.search(lines[k])
        if call is None or lines[k].strip().startswith("//"):
            continue
        without = lines[k][: call.start()] + ";"
        yield lines[k].strip(), "\n".join([*lines[:k], without, *lines[k + 1 :]])
        if call[2] == "<0>" and call[1] == "mma_wait":
            weak = lines[k].replace("<0>", "<1>")
            yield f"weaker {lines[k].strip()}", "\n".join([*lines[:k], weak, *lines[k + 1 :]])


def _of_clusters(lines: list[str]) -> set[int]:
    """Lines under a condition that holds in clusters of several blocks alone."""
    found: set[int] = set()
    for k, line in enumerate(lines):
        edge = line[: len(line) - len(line.lstrip())]
        if line.strip() not in (
            "if constexpr (cluster_size == 1) {",
            "if constexpr (cluster_size > 1) {",
        ):
            continue
        start = k if "> 1" in line else lines.index(f"{edge}}} else {{", k)
        found |= set(range(start, lines.index(f"{edge}}}", start)))
    return found
