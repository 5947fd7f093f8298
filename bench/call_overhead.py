"""What a call from Python costs beside torch's own small kernels, on a device.

    python bench/call_overhead.py [OUT]     # needs a CUDA device, torch and PyCUDA or the driver alone

OUT is a folder with the kernel of samples/add.py, for machines that cannot transpile: nothing but the
runtime is imported then. Without it the kernel is made anew.
Microseconds of the host for each call of a kernel over 1024 elements, medians of 20 rounds of 1000 calls,
the device waited for only at the end of a round. `outputs passed` allocates nothing; `graph` is one
replay of a captured call. Without a device it is the processor's time of the call up to the driver, on a
driver of host memory.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ROUNDS, CALLS, COUNT = 20, 1000, 1024


def median_us(
    call: Callable[[], object],
    wait: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Microseconds of one call, without the work of the device."""
    found = []
    for _ in range(ROUNDS):
        start = clock()
        for _ in range(CALLS):
            call()
        found.append((clock() - start) / CALLS * 1e6)
        wait()
    return statistics.median(found)


def on_device(torch: Any, out: Path | None) -> dict[str, float]:
    """The call's costs on the device that is there."""
    import tile2c

    with tempfile.TemporaryDirectory() as folder:
        if out is None:
            add = tile2c.build(ROOT / "samples" / "add.py", folder, target="cuda")["add"]
        else:
            add = tile2c.load(out)["add"]
        a = torch.ones(COUNT, device="cuda")
        b, c = torch.ones_like(a), torch.empty_like(a)
        add(a, b, c)  # compiled and loaded here
        stream = torch.cuda.current_stream()
        wait = torch.cuda.synchronize
        found = {
            "torch.add(a, b)": median_us(lambda: torch.add(a, b), wait),
            "torch.add(a, b, out=c)": median_us(lambda: torch.add(a, b, out=c), wait),
            "add(a, b)": median_us(lambda: add(a, b), wait),
            "add(a, b, c), outputs passed": median_us(lambda: add(a, b, c), wait),
            "add(a, b, c, stream=s)": median_us(lambda: add(a, b, c, stream=stream), wait),
        }
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            add(a, b, c)
        found["graph with add(a, b, c)"] = median_us(graph.replay, wait)
        return found


def on_host_memory() -> dict[str, float]:
    """The same path with a driver that does nothing: what Python itself takes."""
    sys.path.insert(0, str(ROOT / "tests" / "runtime"))
    import manifests
    from fake_cuda import FakeLibrary
    from tile2c.runtime import compilers
    from tile2c.runtime.backends.cuda import CudaBackend
    from tile2c.runtime.backends.libcuda import LibcudaDriver
    from tile2c.runtime.kernel import Kernel
    from tile2c.runtime.records import read_records

    class Quiet(FakeLibrary):
        def cuLaunchKernel(self, function: Any, *rest: Any) -> int:
            return 0

    class Array:
        def __init__(self, address: int) -> None:
            self.__cuda_array_interface__ = {
                "shape": (COUNT,), "typestr": "<f4", "data": (address, False), "version": 3,
            }  # fmt: skip

    compilers.compiled = lambda *_, **__: b"cubin"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifests.write(folder, manifests.add_entry())
        add = Kernel(read_records(folder)[0], folder, CudaBackend(LibcudaDriver(Quiet())))
        a, b, c = (Array(4096 * (n + 1)) for n in range(3))
        return {
            "add(a, b, c, 1.0) up to the driver": median_us(
                lambda: add(a, b, c, 1.0), int, time.process_time
            )
        }


def main() -> None:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    try:
        import torch

        device = torch.cuda.is_available()
    except ImportError:
        device = False
    if device:
        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {COUNT} float32")
    else:
        print("no device with torch: the call up to a driver that does nothing")
    for name, cost in (on_device(torch, out) if device else on_host_memory()).items():
        print(f"{cost:9.1f} us  {name}")


if __name__ == "__main__":
    main()
