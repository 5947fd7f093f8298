"""A pipelined GEMM as it would go to the device: its numbers, and mutants that must be reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tile2c.runtime.emulate import TensorArgument, ValueArgument, load
from tile2c.runtime.errors import AccessError, KernelError, RaceError

KERNEL = Path(__file__).parent / "kernels" / "gemm_bias_relu.cu"
M, N, K = 200, 256, 512
BOTH = frozenset({"races", "memory"})


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def apart(x: np.ndarray) -> np.ndarray:
    """A copy with memory of nobody on both sides: who strays from it does not meet another tensor."""
    room = 1 << 18
    memory = np.zeros(2 * room + x.nbytes + 256, np.uint8)
    first = room + -(memory.ctypes.data + room) % 256
    placed = memory[first : first + x.nbytes].view(x.dtype).reshape(x.shape)
    placed[...] = x
    return placed


def run(path: Path, checks: frozenset[str], rows: int = M) -> float:
    """The largest error against NumPy."""
    rng = np.random.default_rng(0)
    a = apart(rng.standard_normal((rows, K)).astype(np.float16))
    b = apart(rng.standard_normal((K, N)).astype(np.float16))
    bias = apart(rng.standard_normal(N).astype(np.float16))
    c = apart(np.full((rows, N), np.nan, np.float16))
    module = load(path, family="cuda", arch="sm_80", checks=checks)
    tensors = [
        TensorArgument(name, x.ctypes.data, x.nbytes, name == "C", x)
        for name, x in (("A", a), ("B", b), ("bias", bias), ("C", c))
    ]
    grid = (N // 128, (rows + 127) // 128, 1)
    module.launch(
        "gemm_bias_relu", grid, (128, 1, 1), 0, [*tensors, ValueArgument(np.int32(rows).tobytes())]
    )
    wanted = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias.astype(np.float64), 0)
    return float(np.abs(wanted - c.astype(np.float64)).max())


@pytest.mark.parametrize("checks", [frozenset(), BOTH, frozenset({"races"}), frozenset({"memory"})])
@pytest.mark.parametrize("rows", [1, 128, 200])
def test_numbers(checks: frozenset[str], rows: int) -> None:
    assert run(KERNEL, checks, rows) < 0.05


LOAD_COPY = 'asm volatile("cp.async.cg.shared.global'
LOAD_MATRIX = 'asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared'
MUTANTS: list[tuple[str, str, str, type[KernelError], str]] = [
    ("barrier removed", "        __syncthreads();", "", RaceError, LOAD_COPY),
    ("wait one group too weak", "wait<num_stages - 2>", "wait<num_stages - 1>", RaceError, LOAD_MATRIX),
    ("wait removed", "copies_wait<num_stages - 2>();", "", RaceError, LOAD_MATRIX),
    ("commit removed", "        copies_commit();  // empty", "        // empty", RaceError, LOAD_MATRIX),
    ("M guard dropped on store", "if (i >= M) continue;", "", AccessError, "*dst = "),
    ("M guard dropped on load", "inside = row < M;", "inside = true;", AccessError, LOAD_COPY),
    ("copy loop too long", "block_M * block_K / 8; chunk +=", "block_M * block_K / 8 + 512; chunk +=",
     RaceError, LOAD_COPY),
    ("one tile too many", "ko + num_stages - 1 < K / block_K", "ko + num_stages - 1 <= K / block_K",
     AccessError, LOAD_COPY),
    ("a warp skips the barrier", "        __syncthreads();", "        if (warp < 3) __syncthreads();",
     RaceError, LOAD_MATRIX),
    ("a lane skips ldmatrix", "for (int m = 0; m < 4; ++m) {\n",
     "for (int m = 0; m < 4; ++m) if (lane != 5) {\n", KernelError, "asm volatile(\n"),
    ("too much shared memory", "num_stages = 3", "num_stages = 4", KernelError, "half B_shared"),
    ("last stage short", "B_shared[num_stages]", "B_shared[num_stages - 1]", AccessError, LOAD_COPY),
    ("misaligned chunk", "const int i = chunk / 4, k = chunk % 4 * 8;",
     "const int i = chunk / 4, k = chunk % 4 * 8 + 4;", AccessError, LOAD_COPY),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "old", "new", "error", "at"), MUTANTS, ids=[m[0] for m in MUTANTS]
)
def test_mutant_is_reported(
    tmp_path: Path, what: str, old: str, new: str, error: type[KernelError], at: str
) -> None:
    text = KERNEL.read_text()
    assert text.count(old) >= 1, what
    mutant = text.replace(old, new, 1)
    path = tmp_path / "mutant.cu"
    path.write_text(mutant)
    with pytest.raises(error) as caught:
        run(path, BOTH)
    assert type(caught.value) is error
    assert caught.value.file == str(path)
    assert caught.value.line == line_of(mutant, at)
    assert run(KERNEL, BOTH) < 0.05  # the process is as good as before


def test_race_names_everything(tmp_path: Path) -> None:
    path = tmp_path / "mutant.cu"
    path.write_text(KERNEL.read_text().replace("        __syncthreads();", "", 1))
    with pytest.raises(RaceError) as caught:
        run(path, frozenset({"races"}))
    assert caught.value.array == "A_shared"
    assert len(set(caught.value.threads)) == 2
    assert "with no barrier or other order between" in str(caught.value)
    assert "called from line" in str(caught.value)
