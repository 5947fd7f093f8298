"""Vendors' drivers through ctypes, against a library that exports their functions and checks the calls."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tile2c
from tile2c.runtime.backends import drivers
from tile2c.runtime.backends.drivers import DRIVERS, DriverError, NamedDriver
from tile2c.runtime.errors import BackendUnavailable

HERE = Path(__file__).parent
SAMPLES = HERE.parents[1] / "samples"
STYLES = {
    "hip": ("RUNTIME", "hip"),
    "maca": ("RUNTIME", "mc"),
    "musa": ("DRIVER", "mu"),
    "ppu": ("DRIVER", "hg"),
    "corex": ("RUNTIME -DSTYLE_SYMBOLS", "cuda"),
    "ascendc": ("ACL", "aclrt"),
    "bang": ("CNRT", "cnrt"),
}
FAMILIES = {"hip": "hip", "dcu": "hip", "musa": "musa", "maca": "maca", "ppu": "ppu"}
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="builds its driver with g++")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("drivers")
    found = {}
    for family, (style, prefix) in STYLES.items():
        found[family] = folder / f"lib_{family}.so"
        styles = f"-DSTYLE_{style}".split()
        words = ["-shared", "-fPIC", "-O1", "-std=c++17", *styles, f"-DPREFIX={prefix}"]
        files = [str(HERE / "stand_in" / "driver.cpp"), "-o", str(found[family])]
        subprocess.run(["g++", *words, *files], check=True)
    return found


def opened(libraries: dict[str, Path], family: str, folder: Path) -> Any:
    """A library of its own for each test: they keep state."""
    copy = folder / f"driver_{family}.so"
    shutil.copy(libraries[FAMILIES.get(family, family)], copy)
    library = ctypes.CDLL(str(copy))
    library.stand_in_report.restype = library.stand_in_log.restype = ctypes.c_char_p
    return library


def compiler(folder: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that makes a module of the text, under the name of the vendor's compiler."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    script = bin_folder / command
    script.write_text(
        '#!/bin/sh\nfor word; do case "$last" in -o) out=$word;; esac\n'
        'case "$word" in *.hip|*.mu|*.maca|*.hg) text=$word;; esac; last=$word; done\n'
        '{ printf MODULE:; cat "$text"; } > "$out"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_folder), prepend=":")
    monkeypatch.setenv("TILE2C_CACHE", str(folder / "cache"))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_kernel_is_loaded_launched_and_timed(
    tmp_path: Path, family: str, libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = opened(libraries, family, tmp_path)
    monkeypatch.setattr(drivers, "open_library", lambda names: library)
    program = {"hip": "hipcc", "dcu": "hipcc", "musa": "mcc", "maca": "mxcc", "ppu": "hgcc"}[family]
    compiler(tmp_path, program, monkeypatch)
    add = tile2c.build(SAMPLES / "add.py", tmp_path / "out", family, backend=family)["add"]
    a, b = (np.arange(1000, dtype=np.float32) * scale for scale in (1, 2))
    np.testing.assert_array_equal(add(a, b, stream=0x57), a + b)
    assert add.time(a, b, repeat=2) == [1.5, 1.5]
    assert library.stand_in_report() == b""
    first = library.stand_in_log().decode().splitlines()[0]
    assert first.startswith("add") and " shared 0 stream 87" in first
    assert library.stand_in_open() == 0


@pytest.mark.parametrize("family", ["hip", "musa", "maca", "ppu"])
def test_what_the_driver_refuses_is_told(
    tmp_path: Path, family: str, libraries: dict[str, Path]
) -> None:
    library = opened(libraries, family, tmp_path)
    driver = NamedDriver(DRIVERS[family], library)
    with pytest.raises(DriverError, match=r"ModuleLoadData: \w*(?i:error)"):
        driver.load(b"no module")
    module = driver.load(b"MODULE: void k(int)")
    with pytest.raises(DriverError, match="GetFunction"):
        driver.function(module, "absent")
    function = driver.function(module, "k")
    with pytest.raises(DriverError, match="Launch"):
        driver.launch(function, (1, 1, 1), (64, 1, 1), 60 * 1024, 0, [])
    driver.allow_shared(function, 60 * 1024)
    driver.launch(function, (1, 1, 1), (64, 1, 1), 60 * 1024, 0, [])
    with pytest.raises(DriverError, match="Launch"):
        driver.launch(function, (1, 1, 1), (64, 1, 1), 0, 3, [])
    assert b"without leave" in library.stand_in_report()


def test_a_launch_that_would_bring_the_driver_down_is_not_made(
    tmp_path: Path, libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = opened(libraries, "musa", tmp_path)
    monkeypatch.setattr(drivers, "open_library", lambda names: library)
    compiler(tmp_path, "mcc", monkeypatch)
    defines = {"threads": 1024, "block_N": 1024}
    kernels = tile2c.build(SAMPLES / "add.py", tmp_path / "out", "musa", defines, backend="musa")
    a = np.ones(10, np.float32)
    with pytest.raises(DriverError, match="1024 threads a block, and the driver says it takes 512"):
        kernels["add"](a, a)
    assert library.stand_in_report() == b"" and library.stand_in_log() == b""


@pytest.mark.parametrize("family", FAMILIES)
def test_without_the_library(family: str) -> None:
    with pytest.raises(BackendUnavailable, match=f"no {DRIVERS[family].vendor} (driver|device)"):
        tile2c.runtime.backends.choose.DEVICES[family]()


# By family: the vendor's compiler, and what makes C++ of the text that it gets. Kernels of Ascend are left
# out, `<<<>>>` becomes a call; both are linked with the stand-in.
OBJECTS = {
    "corex": ("clang++", ""),
    "ascendc": (
        "bisheng",
        r"1,/^#include <acl/{/^#include <acl/!d}; "
        r's/\(\w*\)<<</stand_in_call("\1", /; s/>>>(/, /',
    ),
    "bang": (
        "cncc",
        r"1,/^#include <cnrt/{/^#include <cnrt/!d}; "
        r's/\(\w*\)<<</stand_in_call("\1", /; s/>>>(/, /',
    ),
}


@pytest.mark.parametrize("family", OBJECTS)
def test_a_kernel_launched_by_its_own_library(
    tmp_path: Path, family: str, libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = opened(libraries, family, tmp_path)
    monkeypatch.setattr(drivers, "open_library", lambda names: library)
    program, edit = OBJECTS[family]
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    script = bin_folder / program
    script.write_text(
        '#!/bin/sh\nfor word; do case "$last" in -o) out=$word;; esac\n'
        'case "$word" in *.cu|*.cpp|*.mlu) text=$word;; esac; last=$word; done\n'
        '[ -n "$text" ] || exit 0\n'  # asked for its version
        f'sed -e \'{edit}\' "$text" > "$out.cpp"\n'
        f"exec g++ -std=c++17 -w -shared -fPIC -include stdint.h -I{HERE / 'stand_in'} "
        f'{"-include cuda_runtime.h" if family == "corex" else ""} "$out.cpp" '
        f'{tmp_path}/driver_{family}.so -o "$out"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_folder), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    add = tile2c.build(SAMPLES / "add.py", tmp_path / "out", family, backend=family)["add"]
    a, b = (np.arange(1000, dtype=np.float32) * scale for scale in (1, 2))
    np.testing.assert_array_equal(add(a, b, stream=0x57), a + b)
    assert add.time(a, b, repeat=2) == [1.5, 1.5]
    with pytest.raises(DriverError, match="launch"):
        add(a, b, stream=0x58)
    assert set(library.stand_in_report().splitlines()) <= {
        b"an unknown stream", b"record in an unknown stream", b"wait for an unknown stream",
    }  # fmt: skip
    first = library.stand_in_log().decode().splitlines()[0]
    assert first.startswith("add") and " shared 0 stream 87" in first
    assert library.stand_in_open() == 0


def test_another_vendors_device_under_the_same_names(monkeypatch: pytest.MonkeyPatch) -> None:
    from tile2c.runtime.backends import shared_object

    monkeypatch.setattr(shared_object, "device_name", lambda: "NVIDIA H200")
    with pytest.raises(BackendUnavailable, match="no Iluvatar device: there is NVIDIA H200"):
        shared_object.CorexBackend()


@pytest.mark.parametrize("family", OBJECTS)
def test_without_the_run_time_library(family: str) -> None:
    with pytest.raises(BackendUnavailable, match=r"no (Iluvatar|Ascend|Cambricon) (driver|device)"):
        tile2c.runtime.backends.choose.DEVICES[family]()
