"""Builds the kernels of programs/schedules.py and says what they should give."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tile2c
from tile2c.transpile import pipeline
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir import interpret
from tile2c.transpile.stage.defines import parse_defines

PROGRAMS = Path(__file__).parent / "programs" / "schedules.py"
TARGET = "cuda:sm_90a"
F16 = np.float16
Array = np.ndarray[Any, Any]

# kernel -> (choices, shapes of its inputs in turn), at sizes that end inside tiles
CASES: dict[str, tuple[str, Mapping[str, object], tuple[tuple[int, ...], ...]]] = {
    "one_stage": ("one_stage", {}, ((136, 200), (200, 72))),
    "turned": ("one_stage", {"trans_A": True, "trans_B": True}, ((200, 136), (72, 200))),
    "wide_rows": ("one_stage", {"block_K": 128, "block_M": 64}, ((72, 136), (136, 72))),
    "ring": ("ring", {}, ((136, 168), (168, 72))),
    "started": ("started", {}, ((72, 168), (136, 168))),
    "attention": ("attention", {}, ((72, 64), (200, 64), (200, 64))),
    "relay": ("relay", {}, ((37, 32),)),
    "gathered": ("gathered", {}, ((90, 192), (72, 192), (128,))),
    "clustered": ("clustered", {}, ((72, 200),)),
    "scaled": ("scaled", {}, ((50, 104), (104,))),
}


def build(case: str, folder: Path) -> Path:
    """Writes the kernel's text; where it is."""
    kernel, choices, _ = CASES[case]
    tile2c.build(PROGRAMS, folder, TARGET, dict(choices), (kernel,), backend="emulate", force=True)
    (path,) = folder.glob("*.cu")
    return path


def inputs(case: str, seed: int = 0) -> list[Array]:
    kernel, _, shapes = CASES[case]
    rng = np.random.default_rng(seed)
    found: list[Array] = [rng.standard_normal(shape).astype(F16) for shape in shapes]
    if kernel == "relay":
        found[0] = found[0].astype(np.float32)
    if kernel == "scaled":
        found[1] = found[1].astype(np.float32)
    if kernel == "gathered":
        found[2] = rng.integers(0, shapes[0][0], shapes[2]).astype(np.int32)
    return found


def expected(case: str, given: list[Array]) -> Array:
    """The result in float64."""
    kernel, choices, _ = CASES[case]
    a, *more = (x.astype(np.float64) for x in given)
    if kernel == "relay":
        blocks = np.zeros((-(-len(a) // 8) * 8, a.shape[1]))
        blocks[: len(a)] = a * 2
        turned = blocks.reshape(-1, 8, a.shape[1])[:, ::-1].reshape(blocks.shape)
        return turned[: len(a)] + 1
    if kernel == "clustered":
        return a
    if kernel == "scaled":
        return a * more[0]
    if kernel == "attention":
        scores = a @ more[0].T / np.sqrt(a.shape[1])
        weights = np.exp(scores - scores.max(1, keepdims=True))
        return weights / weights.sum(1, keepdims=True) @ more[1]
    if kernel == "gathered":
        return a[given[2]] @ more[0].T
    if kernel == "started":
        return a @ more[0].T
    left = a.T if choices.get("trans_A") else a
    return left @ (more[0].T if choices.get("trans_B") else more[0])


def emulated(folder: Path, given: list[Array]) -> Array:
    (kernel,) = tile2c.load(folder, "emulate", target=TARGET, check="races,memory").values()
    return np.asarray(kernel(*[x.copy() for x in given]))


def meaning(case: str, given: list[Array], source: Path = PROGRAMS) -> Array:
    """What the interpreter gives, with floats in float64."""
    kernel, choices, _ = CASES[case]
    request = pipeline.Request(
        inputs=(source,),
        targets=(TARGET,),
        defines=parse_defines(tuple(f"{name}={value}" for name, value in choices.items())),
        kernels=(kernel,),
    )
    ((_, function),) = pipeline.functions(request, Diagnostics())
    names = [param.name for param in function.params]
    (result,) = interpret.run(
        function, dict(zip(names, given, strict=False)), float64=True
    ).values()
    return result


def near(got: Array, want: Array) -> bool:
    scale = max(1.0, float(np.abs(want).max()))
    return bool(np.allclose(got.astype(np.float64), want, rtol=4e-3, atol=4e-3 * scale))
