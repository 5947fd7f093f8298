"""CUDA text through NVIDIA's run-time compiler of CUDA 12.9, the last that knows sm_70.

It comes as Python packages (`pip install -e '.[nvrtc]'`), needs no device, and has no standard headers:
that a text includes nothing but the toolkit's own is tested by the way.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main

SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = ("add", "row_sum", "softmax", "gemm", "gemm_bias_relu")
OLDER = ("sm_70", "sm_75")


class Nvrtc:
    """The compiler's library and the folder of the toolkit's headers."""

    def __init__(self, library: Path, include: Path) -> None:
        self.lib = ctypes.CDLL(str(library))
        self.include = include

    def __call__(self, text: str, arch: str) -> str:
        """What the compiler says of a text that it takes; fails the test with its words otherwise."""
        program = ctypes.c_void_p()
        create = (ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
        assert self.lib.nvrtcCreateProgram(*create) == 0
        words = [f"-arch={arch}", "-std=c++17", f"-I{self.include}", "--ptxas-options=-v"]
        options = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        status = self.lib.nvrtcCompileProgram(program, len(words), options)
        size = ctypes.c_size_t()
        self.lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.lib.nvrtcGetProgramLog(program, log)
        self.lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
        said = log.value.decode()
        assert status == 0 and size.value > 0, said
        self.lib.nvrtcDestroyProgram(ctypes.byref(program))
        return said


def _package(name: str) -> Path | None:
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    places = found.submodule_search_locations if found else None
    return Path(next(iter(places))) if places else None


@pytest.fixture(scope="module")
def nvrtc() -> Nvrtc:
    compiler, headers = _package("nvidia.cuda_nvrtc"), _package("nvidia.cuda_runtime")
    if compiler is None or headers is None:
        pytest.skip("needs the packages nvidia-cuda-nvrtc-cu12 and nvidia-cuda-runtime-cu12")
    return Nvrtc(next((compiler / "lib").glob("libnvrtc.so.*")), headers / "include")


def clean(said: str) -> None:
    """No warning, and no register that was given an address or spilled."""
    assert not re.search(r"warning(?!: Architectures prior)", said), said
    assert set(re.findall(r"(\d+) bytes (?:stack frame|spill)", said)) == {"0"}, said


@pytest.mark.parametrize("arch", OLDER)
@pytest.mark.parametrize("name", NAMES)
def test_text_for_older_chips(nvrtc: Nvrtc, tmp_path: Path, name: str, arch: str) -> None:
    """Text of their own: sm_70 has products of quad pairs, neither of them asynchronous copies."""
    source = str(SAMPLES / f"{name}.py")
    assert main([source, "-o", str(tmp_path), "--target", f"cuda:{arch}"]) == 0
    clean(nvrtc((tmp_path / f"{name}.cu").read_text(), arch))


@pytest.mark.parametrize("name", NAMES)
def test_the_default(nvrtc: Nvrtc, tmp_path: Path, name: str) -> None:
    """For newer chips see test_compile_cuda.py."""
    assert main([str(SAMPLES / f"{name}.py"), "-o", str(tmp_path)]) == 0
    clean(nvrtc((tmp_path / f"{name}.cu").read_text(), "sm_80"))


@pytest.mark.parametrize("name", ["gemm", "gemm_bias_relu"])
def test_hopper(nvrtc: Nvrtc, tmp_path: Path, name: str) -> None:
    source = str(SAMPLES / f"{name}.py")
    assert main([source, "-o", str(tmp_path), "--target", "cuda:sm_90a"]) == 0
    said = nvrtc((tmp_path / f"{name}.cu").read_text(), "sm_90a")
    clean(said)
    assert not re.search(r"serialized|C75\d\d", said), said
