"""Which texts are looked at: samples and targets, and shapes that lay lines out in other ways."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "samples"
ALL = ("add", "row_sum", "softmax", "gemm", "gemm_bias_relu")
ROWS = (
    "rms_norm", "layer_norm", "online_softmax", "column_sum", "transpose_scale_bias", "gemv", "cumsum",
    "quantize_fp8", "top_k",
)  # fmt: skip
MATRICES = (
    "batched_gemm", "split_k_gemm", "int4_gemm", "conv2d", "flash_attention", "gqa_attention",
    "varlen_attention",
)  # fmt: skip
SUFFIXES = {"cuda": ".cu", "hip": ".hip", "ascendc": ".ascendc.cpp", "bang": ".mlu"}
TARGETS = {
    "cuda:sm_80": (*ALL, *ROWS, *MATRICES),
    "cuda:sm_90a": ("gemm", "gemm_bias_relu"),
    "hip:gfx942": ALL,
    "ascendc:ascend910b": (
        *(*ALL, "split_k_gemm", "flash_attention"),
        *("transpose_scale_bias", "cumsum", "int4_gemm"),
    ),
    "bang:mtp_372": (*ALL, "transpose_scale_bias", "cumsum", "flash_attention"),
}


@dataclass(frozen=True)
class Case:
    """One kernel for one target, with values for some of its parameters."""

    target: str
    kernel: str
    defines: tuple[tuple[str, object], ...] = ()

    @property
    def suffix(self) -> str:
        return SUFFIXES[self.target.partition(":")[0]]

    def __str__(self) -> str:
        words = [f"{name}{value}" for name, value in self.defines]
        return "-".join((self.target.replace(":", "_"), self.kernel, *words))


WHOLE = [Case(target, kernel) for target, kernels in TARGETS.items() for kernel in kernels]

# Other types and tiles: longer lines, other helpers, dynamic shared memory, sizes that are fixed.
OTHER = [
    Case(target, kernel, defines)
    for target in ("cuda:sm_80", "hip:gfx942")
    for kernel, defines in (
        ("add", (("dtype", "float16"), ("block_N", 768))),
        ("row_sum", (("N", 1000), ("threads", 96))),
        ("softmax", (("N", 1000), ("block_M", 4))),
        ("softmax", (("N", 4096), ("dtype", "bfloat16"), ("threads", 128))),
        ("gemm", (("dtype", "bfloat16"), ("num_stages", 4))),
        ("gemm", (("K", 4096), ("M", 4096), ("N", 4096), ("block_K", 64), ("num_stages", 2))),
        ("gemm_bias_relu", (("N", 1000), ("block_M", 64), ("threads", 64))),
        ("gemm_bias_relu", (("num_stages", 1),)),
    )
] + [
    Case("ascendc:ascend910b", "add", (("dtype", "float16"), ("block_N", 768))),
    Case("ascendc:ascend910b", "row_sum", (("N", 1000),)),
    Case("ascendc:ascend910b", "top_k", (("N", 128),)),
    Case("ascendc:ascend910b", "softmax", (("N", 1000), ("block_M", 4))),
]


def generate(case: Case, out: Path) -> str:
    """The text, made by the command's own function in this process."""
    from tile2c.transpile.cli.main import main

    defines = [word for name, value in case.defines for word in ("-D", f"{name}={value}")]
    source = SAMPLES / f"{case.kernel}.py"
    status = main([str(source), "-o", str(out), "--target", case.target, *defines])
    assert status == 0, f"{case} is not generated"
    (path,) = out.glob(f"*{case.suffix}")
    return path.read_text()
