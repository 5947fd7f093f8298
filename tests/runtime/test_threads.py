"""Several threads launch one kernel, each with arguments and a stream of its own."""

from __future__ import annotations

import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import manifests
import numpy as np
import pytest
import tile2c
from fake_cuda import FakeLibrary
from test_contract_python import DeviceArray
from tile2c.runtime.backends.cuda import CudaBackend
from tile2c.runtime.backends.libcuda import LibcudaDriver
from tile2c.runtime.kernel import Kernel
from tile2c.runtime.records import read_records

THREADS, CALLS = 8, 20


class SlowLibrary(FakeLibrary):
    """A driver that reads what it is given some time after it was called."""

    def cuLaunchKernel(self, function: Any, *rest: Any) -> int:
        time.sleep(1e-4)
        return super().cuLaunchKernel(function, *rest)

    def cuLaunchKernelEx(self, config: Any, function: Any, pointers: Any, extra: Any) -> int:
        time.sleep(1e-4)
        return super().cuLaunchKernelEx(config, function, pointers, extra)


def in_threads(work: Any) -> None:
    """Calls work(0) to work(THREADS - 1), all at the same time."""
    start = threading.Barrier(THREADS)

    def run(number: int) -> None:
        start.wait()
        work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(run, range(THREADS)))


@pytest.mark.parametrize("cluster", [None, (2, 1, 1)])
def test_one_prepared_launch(cluster: tuple[int, int, int] | None) -> None:
    library = SlowLibrary()
    driver = LibcudaDriver(library)
    function = driver.function(driver.load(b"a cubin"), "add")
    launch = driver.prepared(function, (4, 1, 1), (32, 1, 1), 0, [8, 8], cluster)

    def work(number: int) -> None:
        for call in range(CALLS):
            values = [struct.pack("<Q", x) for x in (number + 1, number * CALLS + call)]
            launch(number + 1, values)

    in_threads(work)
    seen = set()
    for made in library.launches:
        thread, value = (int.from_bytes(made.bytes_of(k, 8), "little") for k in (0, 1))
        assert made.stream == thread and made.cluster == cluster
        seen.add(value)
    assert seen == set(range(THREADS * CALLS))


@pytest.mark.parametrize("cluster", [None, [2, 1, 1]])
def test_one_kernel(tmp_path: Path, cluster: list[int] | None) -> None:
    entry = manifests.add_entry()
    entry["launch"][0]["cluster"] = cluster
    manifests.write(tmp_path, entry)
    library = SlowLibrary()
    add = Kernel(read_records(tmp_path)[0], tmp_path, CudaBackend(LibcudaDriver(library)))

    def work(number: int) -> None:
        own = [DeviceArray(4096 * (3 * number + k + 1), (8,)) for k in range(3)]
        for _ in range(CALLS):
            add(*own, 1.0, stream=number + 1)

    in_threads(work)
    assert len(library.launches) == THREADS * CALLS and len(library.loaded) == 1
    for made in library.launches:
        first = int.from_bytes(made.bytes_of(0, 8), "little")
        assert first == 4096 * (3 * (made.stream - 1) + 1)


def test_one_emulated_kernel(tmp_path: Path) -> None:
    manifests.write(tmp_path, manifests.add_entry())
    add = tile2c.load(tmp_path, backend="emulate", check="races,memory")["add"]

    def work(number: int) -> None:
        a = np.full(100 + number, number, np.float32)
        for _ in range(5):
            np.testing.assert_array_equal(add(a, a, 2.0), 3 * a)

    in_threads(work)
