"""Builds the library that a C++ program links instead of a vendor's runtime and kernel objects."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tile2c.runtime.emulate.arch import find_arch
from tile2c.runtime.emulate.compiler import find_compiler
from tile2c.runtime.errors import BackendUnavailable
from tile2c.runtime.records import KernelRecord

LIBRARY = "libtile2c_emulated.so"

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class _Interface:
    """Whose functions the programs of a family call."""

    folder: str  # of the headers, under include/
    header: str = ""  # the one with the functions
    runtime: str = "runtime.cpp"
    rewritten: str = ""  # how launchers end that use the vendor's language, and are put into C++


_CUDA = _Interface("cuda", "cuda_runtime_api.h")
_HIP = _Interface("hip", "hip/hip_runtime_api.h")
_INTERFACES = {
    "cuda": _CUDA,
    "hip": _HIP,
    "dcu": _HIP,
    "musa": _Interface("musa", "musa_runtime_api.h"),
    "maca": _Interface("maca", "mc_runtime.h"),
    "corex": _CUDA,
    "ppu": _Interface("ppu", "hggc_runtime_api.h"),
    "ascendc": _Interface("ascendc", "acl/acl.h", "acl.cpp", rewritten=".cpp"),
    "bang": _Interface("bang", "cnrt.h", "cnrt.cpp", rewritten=".mlu"),
}
_CHECK_BITS = {"races": 1, "memory": 2}


@dataclass(frozen=True, slots=True)
class _Device:
    """What programs may ask of the device."""

    static_shared: int = 0
    total_shared: int = 0
    warp: int = 0
    level: int = 0  # compute capability, ten times; 0: none


def build_library(
    folder: Path, records: Sequence[KernelRecord], into: Path, checks: frozenset[str]
) -> Path:
    """Compiles the kernels of `records`, all for one target, and writes everything to `into`.

    Raises BackendUnavailable for a target without a model or a host compiler, KernelError for a
    text that the emulator does not model.
    """
    interface = _interface(records)
    modules = [_module(folder, record, checks) for record in records]
    into.mkdir(parents=True, exist_ok=True)
    rows, handles = [], []
    for record, module in zip(records, modules, strict=True):
        name = f"{record.name}.emulated.so"
        _replace(module, into / name)
        for entry in dict.fromkeys(launch.entry for launch in record.launches):
            handles.append(entry)
            rows.append(f'    {{reinterpret_cast<const void*>(&{entry}), "{entry}", "{name}", '
                        f'"{Path(record.file).name}"}},')  # fmt: skip
        if interface.rewritten:
            _rewrite_launcher(folder, record, into, interface.rewritten)
    family = records[0].family
    _write_headers(interface, into / "include", family)
    _link(interface, _kernel_list(_device(records[0]), handles, rows, checks), into / LIBRARY)
    return into / LIBRARY


def _interface(records: Sequence[KernelRecord]) -> _Interface:
    (target,) = {record.target for record in records}
    found = _INTERFACES.get(target.partition(":")[0])
    if found is None:
        raise BackendUnavailable(f"no C++ program can run emulated kernels for {target}")
    return found


def _module(folder: Path, record: KernelRecord, checks: frozenset[str]) -> Path:
    """The kernel's file, compiled for the CPU."""
    from tile2c.runtime.emulate import load

    path = folder / record.file
    return load(path, family=record.family, arch=record.arch, checks=checks).library


def _device(record: KernelRecord) -> _Device:
    arch = find_arch(record.family, record.arch)
    if arch is None:
        return _Device()
    level = re.fullmatch(r"sm_(\d+)[a-z]?", arch.name)
    return _Device(arch.static_shared, arch.total_shared, arch.warp, int(level[1]) if level else 0)


_KERNEL_TEXT = re.compile(r'^#include ("[^"]+\.(?:ascendc\.cpp|mlu)")$', re.MULTILINE)
_CHEVRONS = re.compile(r"\b(\w+)<<<(.*?)>>>\(", re.DOTALL)


def _rewrite_launcher(folder: Path, record: KernelRecord, into: Path, suffix: str) -> None:
    """The launcher in C++: launches become calls, line for line, and the kernel's text stays out."""
    path = (folder / record.file).with_name(f"{record.name}_launch{suffix}")
    if not path.exists():
        return
    text = _KERNEL_TEXT.sub(r"// \1 is in the library", path.read_text(encoding="utf-8"))
    text = _CHEVRONS.sub(r'tile2c_emulated("\1", \2, ', text)
    (into / path.with_suffix(".cpp").name).write_text(text, encoding="utf-8")


def _kernel_list(
    device: _Device, handles: Sequence[str], rows: Sequence[str], checks: frozenset[str]
) -> str:
    """C++ with one function a kernel, whose address stands for it, and the table of them."""
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
const unsigned emulated_static_shared = {device.static_shared};
const unsigned emulated_total_shared = {device.total_shared};
const unsigned emulated_warp_size = {device.warp};
const int emulated_level = {device.level};
"""


def _write_headers(interface: _Interface, into: Path, family: str) -> None:
    """The vendor's header names, so that the folder is all that a program's build needs."""
    source = _HERE / "include"
    shutil.copytree(source / interface.folder, into / family, dirs_exist_ok=True)
    for path in source.glob("*.h"):
        shutil.copyfile(path, into / path.name)


def _link(interface: _Interface, kernels: str, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        Path(scratch, "kernels.cpp").write_text(kernels, encoding="utf-8")
        command = [
            find_compiler(), "-std=c++17", "-O1", "-g1", "-fPIC", "-shared", "-fvisibility=hidden",
            f'-DEMU_HEADER="{interface.header}"', f"-I{_HERE / 'include' / interface.folder}",
            f"-I{_HERE}",
            "-Wno-return-type-c-linkage", f"-Wl,-soname,{LIBRARY}",
            str(_HERE / interface.runtime), f"{scratch}/kernels.cpp", "-o", f"{scratch}/made.so", "-ldl",
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
    try:
        shutil.copyfile(source, name)
        os.chmod(name, 0o755)
        os.replace(name, target)
    except OSError:
        os.unlink(name)
        raise
