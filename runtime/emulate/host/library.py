"""Builds the library that a C++ program links instead of a vendor's runtime and kernel objects."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tile2c.runtime.emulate.arch import Arch, find_arch
from tile2c.runtime.emulate.compiler import BuildRequest, build, find_compiler
from tile2c.runtime.errors import BackendUnavailable
from tile2c.runtime.records import KernelRecord

LIBRARY = "libtile2c_emulated.so"

_HERE = Path(__file__).parent
# By family: whose interface its programs call, which is also the folder of the headers.
_VENDORS = {
    "cuda": "cuda", "hip": "hip", "dcu": "hip", "musa": "musa", "maca": "maca", "corex": "cuda",
    "ppu": "ppu",
}  # fmt: skip
_HEADERS = {
    "cuda": "cuda_runtime_api.h", "hip": "hip/hip_runtime_api.h", "musa": "musa_runtime_api.h",
    "maca": "mc_runtime.h", "ppu": "hggc_runtime_api.h",
}  # fmt: skip
_CHECK_BITS = {"races": 1, "memory": 2}


def build_library(
    folder: Path, records: Sequence[KernelRecord], into: Path, checks: frozenset[str]
) -> Path:
    """Compiles the kernels of `records`, all for one target, and writes everything to `into`.

    Raises BackendUnavailable for a target without a model or a host compiler, KernelError for a
    text that the emulator does not model.
    """
    family, arch = _one_target(records)
    into.mkdir(parents=True, exist_ok=True)
    rows, handles = [], []
    for record in records:
        path = folder / record.file
        text = path.read_text(encoding="utf-8")
        module = build(BuildRequest(str(path), text, arch, bool(checks)))
        name = f"{record.name}.emulated.so"
        _replace(module, into / name)
        for entry in dict.fromkeys(launch.entry for launch in record.launches):
            handles.append(entry)
            rows.append(f'    {{reinterpret_cast<const void*>(&{entry}), "{entry}", "{name}", '
                        f'"{Path(record.file).name}"}},')  # fmt: skip
    _write_headers(family, into / "include")
    _link(family, _kernel_list(arch, handles, rows, checks), into / LIBRARY)
    return into / LIBRARY


def _one_target(records: Sequence[KernelRecord]) -> tuple[str, Arch]:
    (target,) = {record.target for record in records}
    family, _, name = target.partition(":")
    arch = find_arch(family, name)
    if arch is None or family not in _VENDORS:
        raise BackendUnavailable(f"no C++ program can run emulated kernels for {target}")
    return family, arch


def _kernel_list(
    arch: Arch, handles: Sequence[str], rows: Sequence[str], checks: frozenset[str]
) -> str:
    """C++ with one function a kernel, whose address stands for it, and the table of them."""
    level = re.fullmatch(r"sm_(\d+)[a-z]?", arch.name)
    quote = "\n"
    return f"""\
#include "kernels.h"

#define HANDLE extern "C" __attribute__((visibility("default"), noinline, no_icf)) void
{quote.join(f"HANDLE {handle}() {{}}" for handle in handles)}

const EmulatedKernel emulated_kernels[] = {{
{quote.join(rows)}
}};
const int emulated_kernel_count = {len(rows)};
const int emulated_checks = {sum(_CHECK_BITS[check] for check in checks)};
const unsigned emulated_static_shared = {arch.static_shared};
const unsigned emulated_total_shared = {arch.total_shared};
const unsigned emulated_warp_size = {arch.warp};
const int emulated_level = {level[1] if level else 0};
"""


def _write_headers(family: str, into: Path) -> None:
    """The vendor's header names, so that the folder is all that a program's build needs."""
    source = _HERE / "include"
    shutil.copytree(source / _VENDORS[family], into / family, dirs_exist_ok=True)
    for path in source.glob("*.h"):
        shutil.copyfile(path, into / path.name)


def _link(family: str, kernels: str, target: Path) -> None:
    vendor = _VENDORS[family]
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        Path(scratch, "kernels.cpp").write_text(kernels, encoding="utf-8")
        command = [
            find_compiler(), "-std=c++17", "-O1", "-g1", "-fPIC", "-shared", "-fvisibility=hidden",
            f'-DEMU_HEADER="{_HEADERS[vendor]}"', f"-I{_HERE / 'include' / vendor}", f"-I{_HERE}",
            "-Wno-return-type-c-linkage", f"-Wl,-soname,{LIBRARY}",
            str(_HERE / "runtime.cpp"), f"{scratch}/kernels.cpp", "-o", f"{scratch}/made.so", "-ldl",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BackendUnavailable(
                f"the host's compiler cannot build the library: {done.stderr.strip()[:2000]}"
            )
        os.replace(f"{scratch}/made.so", target)


def _replace(source: Path, target: Path) -> None:
    """Copies in one step: a program may run on the file that is there."""
    handle, name = tempfile.mkstemp(dir=target.parent)
    os.close(handle)
    shutil.copyfile(source, name)
    os.chmod(name, 0o755)
    os.replace(name, target)
