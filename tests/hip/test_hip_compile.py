"""HIP kernels through clang: no warning, matrix instructions, nothing spilled, two in one library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hip_programs import GEMMS, MATRICES, NAMES, REDUCTIONS, ROWS, SAMPLES, text_of
from tile2c.transpile.output.header import compile_command

PRELUDE = Path(__file__).parent / "prelude"
CLANG = shutil.which("clang-22")
needs_clang = pytest.mark.skipif(
    CLANG is None or shutil.which("ld.lld-22") is None,
    reason="needs clang-22 and lld-22 (Debian: apt install clang-22 lld-22)",
)
GEMM_NAMES = ("gemm", "gemm_bias_relu")


def clang(arch: str, *arguments: object) -> None:
    """Compiles for the device alone, with the prelude in place of ROCm's headers."""
    command = [
        CLANG, "-x", "hip", f"--offload-arch={arch}", "--offload-device-only", "-O3", "-std=c++17",
        "-nogpuinc", "-nogpulib", "--no-gpu-bundle-output", f"-I{PRELUDE}",
        "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion",
        "-Wno-unused-parameter",  # the interface keeps what only the grid needs
        "-Werror", *map(str, arguments),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def assembly(path: Path, arch: str) -> str:
    out = path.with_suffix(".s")
    clang(arch, "-S", path, "-o", out)
    return out.read_text()


def nothing_spilled(text: str, allowed: int = 0) -> None:
    """No kernel keeps more than `allowed` bytes of its registers in memory."""
    found = re.findall(
        r"\.name: +(\w+)\n\s+\.private_segment_fixed_size: *(\d+)", text.split("amdhsa.kernels:")[1]
    )
    assert len(found) == len(re.findall(r"\.amdhsa_kernel ", text)) > 0
    for name, size in found:
        assert int(size) <= allowed, (name, size)


@needs_clang
@pytest.mark.parametrize(
    ("arch", "name"),
    [*(("gfx942", name) for name in NAMES), *((arch, "gemm") for arch in ("gfx90a", "gfx950"))],
)
def test_samples(tmp_path: Path, name: str, arch: str) -> None:
    text = assembly(text_of(SAMPLES / f"{name}.py", tmp_path, arch), arch)
    nothing_spilled(text)
    assert ("v_mfma" in text) == (name in GEMM_NAMES)


@needs_clang
@pytest.mark.parametrize(
    ("arch", "instruction", "depth"),
    [
        ("gfx942", "v_mfma_f32_16x16x16_f16", 16),
        ("gfx90a", "v_mfma_f32_16x16x16f16", 16),
        ("gfx950", "v_mfma_f32_16x16x32_f16", 32),
    ],
)
def test_products_of_a_wave(tmp_path: Path, arch: str, instruction: str, depth: int) -> None:
    """gemm: 128 x 128 x 32 over two waves; the loop holds every product of a wave once, and nothing
    of it lies in memory."""
    text = assembly(text_of(SAMPLES / "gemm.py", tmp_path, arch), arch)
    nothing_spilled(text)
    products = (128 // 16) * (128 // 16) // 2 * (32 // depth)
    for kernel in ("gemm", "gemm_any"):
        body = text.split(f"\n{kernel}:", 1)[1].split("s_endpgm", 1)[0]
        assert len(re.findall(rf"\b{instruction}\b", body)) == products
        assert "scratch_" not in body and "buffer_store" not in body


@needs_clang
@pytest.mark.parametrize("name", MATRICES)
def test_matrix_operations(tmp_path: Path, name: str) -> None:
    text = assembly(text_of(SAMPLES / f"{name}.py", tmp_path), "gfx942")
    nothing_spilled(text)
    assert "v_mfma" in text


@needs_clang
@pytest.mark.parametrize("name", (*ROWS, "quantize_fp8"))
def test_row_operations(tmp_path: Path, name: str) -> None:
    own = {"fp8": "float8_e4m3fnuz"} if name == "quantize_fp8" else {}
    nothing_spilled(assembly(text_of(SAMPLES / f"{name}.py", tmp_path, "gfx942", **own), "gfx942"))


@pytest.mark.skipif(
    shutil.which("hipcc") is None,
    reason="needs hipcc with ROCm's headers (Debian: apt install hipcc libamdhip64-dev)",
)
@pytest.mark.parametrize("name", NAMES)
def test_the_command_of_the_header(tmp_path: Path, name: str) -> None:
    """The vendor's driver and headers; gfx90a is what Debian's release of them knows."""
    path = text_of(SAMPLES / f"{name}.py", tmp_path, "gfx90a")
    done = subprocess.run(
        str(compile_command(path.read_text())).split(),
        cwd=tmp_path,
        env={**os.environ, "HIP_PLATFORM": "amd"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert path.with_suffix(".hsaco").stat().st_size > 0


@needs_clang
@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize("name", NAMES)
def test_samples_on_rdna(tmp_path: Path, name: str, arch: str) -> None:
    """256 registers a lane, 128 of them for C: gemm spills two, gemm_bias_relu's epilogue a few more."""
    text = assembly(text_of(SAMPLES / f"{name}.py", tmp_path, arch), arch)
    if name != "gemm_bias_relu":
        nothing_spilled(text, allowed=16)
    assert ("v_wmma" in text) == (name in GEMM_NAMES)


@needs_clang
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("num_stages", [1, 2])
def test_bfloat16_gemm(tmp_path: Path, transposed: bool, num_stages: int) -> None:
    path = text_of(
        GEMMS,
        tmp_path,
        "gfx942",
        dtype="bfloat16",
        out_dtype="bfloat16",
        transpose_B=transposed,
        num_stages=num_stages,
    )
    text = assembly(path, "gfx942")
    nothing_spilled(text)
    assert re.search(r"v_mfma_f32_16x16x\d+_bf16", text)


@needs_clang
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_reductions_in_16_bits(tmp_path: Path, dtype: str) -> None:
    nothing_spilled(assembly(text_of(REDUCTIONS, tmp_path, "gfx942", dtype=dtype), "gfx942"))


@needs_clang
def test_two_kernels_in_one_library(tmp_path: Path) -> None:
    """Helpers are static: the files link together, each entry exported once."""
    units = []
    for name in GEMM_NAMES:
        path = text_of(SAMPLES / f"{name}.py", tmp_path / name, "gfx942")
        unit = path.with_suffix(".bc")
        clang("gfx942", "-fgpu-rdc", "-c", "-emit-llvm", path, "-o", unit)
        units.append(unit)
    library = tmp_path / "library.hsaco"
    command = [
        CLANG,
        "--target=amdgcn-amd-amdhsa",
        "-mcpu=gfx942",
        "-nogpulib",
        *units,
        "-o",
        library,
    ]
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    symbols = library.read_bytes()
    for name in GEMM_NAMES:
        assert f"\0{name}.kd\0".encode() in symbols and f"\0{name}_any.kd\0".encode() in symbols
