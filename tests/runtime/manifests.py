"""Hand-made output folders for the runtime's tests; no transpiler is needed for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HEADER = """\
// {name}: {what}      from {name}.py by tile2c 0.1.0
//   target   cuda:sm_80 (has run on silicon)
//   compile  nvcc -arch=sm_80 -O3 -std=c++17 -cubin {name}.cu -o {name}.cubin
//   text     sha256 000000000000  (edit freely: `tile2c --merge` keeps your changes)
"""

ADD = (
    HEADER.format(name="add", what="C = alpha * A + B")
    + """\
extern "C" __global__ void __launch_bounds__(128) add(
    const float* __restrict__ A,  // [N]
    const float* __restrict__ B,  // [N]
    float* __restrict__ C,  // [N]
    float alpha, int N) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < N) C[i] = alpha * A[i] + B[i];
}
"""
)

MATRIX = {"kind": "tensor", "dtype": "float16"}


def add_entry(**changes: Any) -> dict[str, Any]:
    """The manifest entry of `add`, which has one launch."""
    arguments = [
        {"kind": "tensor", "name": "A"},
        {"kind": "tensor", "name": "B"},
        {"kind": "tensor", "name": "C"},
        {"kind": "scalar", "name": "alpha"},
        {"kind": "size", "name": "N"},
    ]
    vector = {"kind": "tensor", "dtype": "float32", "shape": ["N"]}
    entry: dict[str, Any] = {
        "name": "add",
        "target": "cuda:sm_80",
        "file": "add.cu",
        "entry": "add",
        "source": {"file": "add.py", "line": 1, "sha256": ""},
        "parameters": {"block_N": 128},
        "sizes": ["N"],
        "args": [
            {**vector, "name": "A", "role": "in"},
            {**vector, "name": "B", "role": "in"},
            {**vector, "name": "C", "role": "out"},
            {"name": "alpha", "kind": "scalar", "dtype": "float32"},
        ],
        "launch": [
            {
                "group": 0,
                "when": None,
                "entry": "add",
                "grid": ["(N + 127) / 128", "1", "1"],
                "block": [128, 1, 1],
                "shared_bytes": 0,
                "cluster": None,
                "args": arguments,
            }
        ],
        "workspace": None,
        "modules": [],
        "sha256": "",
    }
    return {**entry, **changes}


def gemm_entry(**changes: Any) -> dict[str, Any]:
    """The manifest entry of a product C[M, N] = A[M, K] @ B[K, N] with an aligned variant."""
    arguments = [{"kind": "tensor", "name": name} for name in "ABC"]
    arguments += [{"kind": "size", "name": name} for name in "MNK"]
    launch = {
        "group": 0,
        "when": "N % 8 == 0 and A % 16 == 0",
        "entry": "gemm_aligned",
        "grid": ["(N + 127) / 128", "(M + 127) / 128", "1"],
        "block": [128, 1, 1],
        "shared_bytes": 65536,
        "cluster": None,
        "args": arguments,
    }
    entry = add_entry(
        name="gemm",
        file="gemm.cu",
        entry="gemm",
        sizes=["M", "N", "K"],
        args=[
            {**MATRIX, "name": "A", "shape": ["M", "K"], "role": "in"},
            {**MATRIX, "name": "B", "shape": ["K", "N"], "role": "in"},
            {**MATRIX, "name": "C", "shape": ["M", "N"], "role": "out"},
        ],
        launch=[launch, {**launch, "when": None, "entry": "gemm", "shared_bytes": 0}],
    )
    return {**entry, **changes}


def write(folder: Path, *entries: dict[str, Any], texts: dict[str, str] | None = None) -> Path:
    """An output folder with these entries; kernel files hold ADD unless `texts` says else."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {"version": 1, "tile2c": "0.1.0", "kernels": list(entries)}
    (folder / "tile2c.json").write_text(json.dumps(data))
    for entry in entries:
        path = folder / entry["file"]
        path.parent.mkdir(exist_ok=True)
        path.write_text((texts or {}).get(entry["file"], ADD))
    return folder
