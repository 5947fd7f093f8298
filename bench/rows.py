"""The samples of row operations beside their rivals on one device: right, then as fast as a copy.

    python bench/rows.py OUT [MORE ...] [--only softmax,gemv] [--rivals]

OUT and MORE are output folders with samples of row operations, for cuda:sm_80, cuda:sm_90a or both:
`COMMANDS` makes one with all of them; others may hold some of them with other choices. Prints a table
of each operation: time, rate (each input read once, each output written once), and the ratio to a device
copy of as many bytes in the same run. Rivals are torch and, with --rivals, torch.compile and TileLang.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from measure import flush, graph_of, relative_error

COMMANDS = """
tile2c samples/rms_norm.py samples/layer_norm.py samples/softmax.py samples/online_softmax.py
    samples/row_sum.py samples/column_sum.py samples/transpose_scale_bias.py samples/gemv.py
    samples/cumsum.py samples/quantize_fp8.py samples/top_k.py -o OUT --target cuda:sm_80,cuda:sm_90a
    -D rms_norm.N=8192 -D layer_norm.N=8192 -D softmax.N=8192 -D top_k.N=128
tile2c samples/softmax.py -o OUT-512 -D N=8192 -D threads=512
tile2c samples/transpose_scale_bias.py -o OUT-wide -D block_M=128
tile2c samples/transpose_scale_bias.py -o OUT-square -D block_M=128 -D block_N=128 -D threads=512
"""

Tensors = tuple[torch.Tensor, ...]


def normal(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


@dataclass(frozen=True)
class Operation:
    """One sample: `inputs` from sizes, what torch says of them (in double), and how far off one may be."""

    inputs: Callable[..., Tensors]
    means: Callable[..., torch.Tensor | Tensors]
    torch: Callable[..., object]  # what a user would call
    size: tuple[int, ...]  # at which it is timed
    odd: tuple[tuple[int, ...], ...]  # at which it is checked, too
    bound: float = 1e-3
    compiled: bool = True  # whether torch.compile is worth a try


def _two(m: int, n: int) -> Tensors:
    return (normal(m, n),)


def _wide(m: int, n: int) -> Tensors:
    return (normal(m, n, dtype=torch.float32),)


def _rms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, x.shape[1:], w, 1e-6)


def _layer(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[1:], w, b, 1e-5)


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, 1)


def _turned(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (x * 0.5 + b).T.contiguous()


def _scales(x: torch.Tensor) -> torch.Tensor:
    m, n = x.shape
    padded = torch.nn.functional.pad(x, (0, -n % 128)).view(m, -1, 128)
    return padded.abs().amax(2).clamp(min=1e-4) / 448


def _quantized(x: torch.Tensor) -> Tensors:
    scales = _scales(x.float())
    wide = scales.repeat_interleave(128, 1)[:, : x.shape[1]]
    return (x.float() / wide).to(torch.float8_e4m3fn), scales


def _quantized_exactly(x: torch.Tensor) -> Tensors:
    scales = _scales(x)
    return x / scales.repeat_interleave(128, 1)[:, : x.shape[1]], scales


def _largest(x: torch.Tensor) -> torch.Tensor:
    return torch.topk(x, 6, dim=1).values


ROWS = ((1, 8192), (77, 8192))
ODD = ((1, 1), (5, 7), (100, 777), (1000, 4096), (257, 1001))
OPERATIONS: dict[str, Operation] = {
    "rms_norm": Operation(
        lambda m, n: (normal(m, n), normal(n)), _rms, _rms, (16384, 8192), ROWS
    ),
    "layer_norm": Operation(
        lambda m, n: (normal(m, n), normal(n), normal(n)), _layer, _layer, (16384, 8192), ROWS
    ),
    "softmax": Operation(_two, _softmax, _softmax, (16384, 8192), ROWS),
    "online_softmax": Operation(_two, _softmax, _softmax, (16384, 8192), ODD),
    "row_sum": Operation(
        _wide, lambda x: x.sum(1), lambda x: x.sum(1), (16384, 16384), ODD, 1e-5
    ),
    "column_sum": Operation(
        _wide, lambda x: x.sum(0), lambda x: x.sum(0), (16384, 16384), ODD, 1e-5
    ),
    "transpose_scale_bias": Operation(
        lambda m, n: (normal(m, n), normal(n)), _turned, _turned, (16384, 16384), ODD
    ),
    "gemv": Operation(
        lambda m, n: (normal(m, n), normal(n)), torch.mv, torch.mv, (16384, 16384), ODD,
        compiled=False,
    ),
    "cumsum": Operation(
        _wide, lambda x: x.cumsum(1), lambda x: x.cumsum(1), (16384, 8192), ODD, 1e-5
    ),
    "quantize_fp8": Operation(_two, _quantized_exactly, _quantized, (16384, 8192), ODD, 0.05),
    "top_k": Operation(
        _wide, _largest, lambda x: torch.topk(x, 6, dim=1), (262144, 128), ((1, 128), (77, 128)), 0.0,
        compiled=False,
    ),
}  # fmt: skip


def as_tuple(found: object) -> Tensors:
    return tuple(found) if isinstance(found, tuple | list) else (found,)  # type: ignore[return-value]


def check(name: str, label: str, kernel: Callable[..., Any]) -> int:
    """The kernel against torch, at odd sizes and at the timed one; the number of wrong results."""
    operation, wrong = OPERATIONS[name], 0
    for size in (*operation.odd, operation.size):
        inputs = operation.inputs(*size)
        rows = slice(0, None if size != operation.size or name == "column_sum" else 512)
        outputs = as_tuple(kernel(*inputs))
        shorter = [x[rows] if x.dim() == 2 or name == "cumsum" else x for x in inputs]
        means = as_tuple(operation.means(*(x.double() for x in shorter)))
        for number, (output, mean) in enumerate(zip(outputs, means, strict=False)):
            if name == "transpose_scale_bias":
                output = output[:, rows]
            elif name != "column_sum":
                output = output[rows]
            error = relative_error(output.float(), mean)
            verdict = "ok" if error <= operation.bound else "WRONG"
            wrong += verdict != "ok"
            print(f"{label:24} {name:22} {size!s:18} output {number}: error {error:.2e} {verdict}")
    return wrong


def moved(tensors: Tensors) -> int:
    """Bytes of tensors, each counted once."""
    return sum(x.numel() * x.element_size() for x in tensors)


def compiled(call: Callable[..., object], inputs: Tensors) -> Callable[[], object]:
    fast = torch.compile(call, dynamic=False)
    fast(*inputs)
    return lambda: fast(*inputs)


def tilelang_row_kernel(name: str, m: int, n: int, inputs: Tensors) -> Callable[[], object]:
    """The sample itself, compiled by TileLang: the same tile program for both."""
    import runpy

    space = runpy.run_path(str(Path(__file__).parents[1] / "samples" / f"{name}.py"))
    program = space[name]
    if name in ("online_softmax", "gemv", "quantize_fp8"):
        return lambda: program(*inputs)
    fixed = name in ("rms_norm", "layer_norm", "softmax", "top_k")
    kernel = program(n) if fixed else program()
    return lambda: kernel(*inputs)


def rivals(
    name: str, inputs: Tensors, all_of_them: bool
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Launches of torch and, if asked for, of TileLang and torch.compile: those that can be captured."""
    operation = OPERATIONS[name]
    m, n = operation.size
    made: list[tuple[str, Callable[[], Callable[[], object]]]] = [
        ("torch", lambda: lambda: operation.torch(*inputs))
    ]
    if all_of_them:
        made.append(("TileLang", lambda: tilelang_row_kernel(name, m, n, inputs)))
    if all_of_them and operation.compiled:
        made.append(("torch.compile", lambda: compiled(operation.torch, inputs)))
    for label, make in made:
        try:
            launch = make()
            graph_of(launch)
            yield label, launch
        except Exception as problem:  # a rival that cannot do it is no reason to stop
            print(f"{label} {name}: {type(problem).__name__} {str(problem)[:80]}")


def time(name: str, kernels: dict[str, Callable[..., Any]], with_rivals: bool) -> None:
    """One table: the kernels, torch, the rivals, and a copy of as many bytes."""
    operation = OPERATIONS[name]
    inputs = operation.inputs(*operation.size)
    contenders: dict[str, Callable[[], object]] = {}
    total = 0
    for label, kernel in kernels.items():
        outputs = as_tuple(kernel(*inputs))
        total = moved((*inputs, *outputs))
        contenders[label] = lambda kernel=kernel, outputs=outputs: kernel(*inputs, *outputs)
    source = torch.empty(total // 2, dtype=torch.uint8, device="cuda").fill_(1)
    target = torch.empty_like(source)
    contenders["copy"] = lambda: target.copy_(source)
    contenders.update(rivals(name, inputs, with_rivals))
    found = flush(contenders)
    others = [ms for other, ms in found.items() if other not in (*kernels, "copy")]
    best = min(others, default=found["copy"])
    for label, ms in found.items():
        print(
            f"{name:22} {operation.size!s:16} {label:24} {ms:.4f} ms {total / ms / 1e6:6.0f} GB/s "
            f"{found['copy'] / ms:.3f} of copy, {best / ms:.3f} of the best rival"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", nargs="+")
    parser.add_argument("--only", default="", help="names of operations, with commas")
    parser.add_argument("--rivals", action="store_true")
    options = parser.parse_args()
    import tile2c

    torch.manual_seed(0)
    found: dict[str, dict[str, Callable[..., Any]]] = {}
    for folder in options.out:
        for target in ("cuda:sm_80", "cuda:sm_90a"):
            try:
                kernels = tile2c.load(folder, target=target)
            except Exception as problem:  # a target that the folder does not hold
                print(f"{folder} {target}: {problem}")
                continue
            for name in OPERATIONS:
                if name in kernels:
                    label = f"{Path(folder).name} {target.partition(':')[2]}"
                    found.setdefault(name, {})[label] = kernels[name]
    chosen = options.only.split(",") if options.only else list(OPERATIONS)
    wrong = 0
    for name, kernels in found.items():
        if name in chosen:
            wrong += sum(check(name, label, kernel) for label, kernel in kernels.items())
    for name, kernels in found.items():
        if name in chosen:
            try:
                time(name, kernels, options.rivals)
            except Exception as problem:  # one that cannot be timed leaves the others
                print(f"{name}: {type(problem).__name__} {problem}")
    print("failed checks:", wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
