"""A call that looks like an earlier one goes a short way: the same launches, and no error is lost."""

from __future__ import annotations

import struct
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import manifests
import numpy as np
import pytest
from fake_cuda import FakeLibrary
from tile2c.runtime.backends.cuda import CudaBackend
from tile2c.runtime.backends.libcuda import LibcudaDriver
from tile2c.runtime.kernel import Kernel
from tile2c.runtime.records import read_records
from tile2c.runtime.repeat import Repeats, moduli


class Array:
    """Device memory that is described, not there."""

    def __init__(
        self, address: int, *shape: int, kind: str = "<f4", strides: Any = None, fixed: bool = False
    ) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": kind, "data": (address, fixed), "strides": strides,
            "version": 3,
        }  # fmt: skip


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    from tile2c.runtime import compilers

    monkeypatch.setattr(compilers, "compiled", lambda *_, **__: b"cubin")


def loaded(folder: Path, entry: dict[str, Any]) -> tuple[Kernel, FakeLibrary]:
    manifests.write(folder, entry)
    library = FakeLibrary(widths={3: 4, 4: 4})
    return Kernel(read_records(folder)[0], folder, CudaBackend(LibcudaDriver(library))), library


def long_way_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the long way")

    monkeypatch.setattr("tile2c.runtime.kernel.bind", fail)


def test_blocks_of_a_cluster_run_together_at_each_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = manifests.add_entry()
    entry["launch"][0]["cluster"] = [2, 1, 1]
    add, library = loaded(tmp_path, entry)
    add(*(Array(4096 * n, 300) for n in (1, 2, 3)), 1.0, stream=5)
    long_way_refused(monkeypatch)
    add(*(Array(4096 * n, 300) for n in (4, 5, 6)), 2.5, stream=7)
    assert [launch.cluster for launch in library.launches] == [(2, 1, 1)] * 2
    assert [launch.numbers for launch in library.launches] == [(3, 1, 1, 128, 1, 1, 0)] * 2
    assert [launch.stream for launch in library.launches] == [5, 7]


def test_the_same_launch_with_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add, library = loaded(tmp_path, manifests.add_entry())
    add(*(Array(4096 * n, 300) for n in (1, 2, 3)), 1.0, stream=5)
    long_way_refused(monkeypatch)
    add(*(Array(4096 * n, 300) for n in (4, 5, 6)), 2.5, stream=7)
    first, second = library.launches
    assert (first.entry, first.numbers) == (second.entry, second.numbers)
    assert (first.stream, second.stream) == (5, 7)
    places = [int.from_bytes(part, "little") for part in second.arguments[:3]]
    assert places == [4096 * n for n in (4, 5, 6)]
    assert second.arguments[3] == struct.pack("<f", 2.5)
    assert second.arguments[4] == (300).to_bytes(4, "little")
    assert library.contexts == 0
    with np.errstate(over="ignore"):
        add(*(Array(4096 * n, 300) for n in (4, 5, 6)), 1e300)
    assert library.launches[-1].arguments[3] == struct.pack("<f", float("inf"))


def test_every_error_is_still_told(tmp_path: Path) -> None:
    add, library = loaded(tmp_path, manifests.add_entry())
    good = [Array(4096 * n, 300) for n in (1, 2, 3)]
    for _ in range(2):
        add(*good, 1.0)
    cases: list[tuple[tuple[Any, ...], type[Exception], str]] = [
        ((good[0], Array(8192, 299), good[2], 1.0), ValueError, "N is 299 by B, but 300 by A"),
        ((good[0], Array(8192, 300, kind="<f8"), good[2], 1.0), TypeError, "B is float64"),
        ((*good[:2], Array(8192, 300, strides=(8,)), 1.0), ValueError, "C has gaps"),
        ((*good[:2], Array(8192, 300, fixed=True), 1.0), ValueError, "it is read-only"),
        ((*good[:2], Array(8192, 3, 100), 1.0), ValueError, "C has shape"),
        ((*good, "x"), ValueError, "could not convert"),
        ((*good, None), TypeError, "NoneType"),
        ((*good[:2], object(), 1.0), TypeError, "C must be a tensor"),
        ((*good, 1.0, 2), TypeError, "add takes"),
    ]
    for arguments, kind, message in cases:
        with pytest.raises(kind, match=message):
            add(*arguments)
    assert len(library.launches) == 2 and library.contexts == 0


def test_addresses_choose_among_launches(tmp_path: Path) -> None:
    entry = manifests.add_entry()
    launch = entry["launch"][0]
    entry["launch"] = [
        {**launch, "when": "N % 4 == 0 and A % 16 == 0", "entry": "add_fast"},
        launch,
    ]
    add, library = loaded(tmp_path, entry)
    for address in (4096, 4100, 8192, 8196, 4096):
        add(Array(address, 300), Array(8192, 300), Array(12288, 300), 1.0)
    names = [launch.entry for launch in library.launches]
    assert names == ["add_fast", "add", "add_fast", "add", "add_fast"]
    assert moduli(add.record) == {"A": 16}


def test_what_is_asked_of_an_address_beside_its_remainder(tmp_path: Path) -> None:
    add, _ = loaded(tmp_path, manifests.add_entry(requires=["A < C"]))
    assert moduli(add.record) is None
    add(Array(4096, 8), Array(8192, 8), Array(12288, 8), 1.0)
    with pytest.raises(ValueError, match="add needs A < C"):
        add(Array(16384, 8), Array(8192, 8), Array(12288, 8), 1.0)


def test_integers_belong_to_the_call(tmp_path: Path) -> None:
    entry = manifests.add_entry()
    entry["args"][3]["dtype"] = "int32"
    entry["launch"][0]["grid"] = ["alpha", "1", "1"]
    add, library = loaded(tmp_path, entry)
    tensors = [Array(4096 * n, 8) for n in (1, 2, 3)]
    for value in (3, 4, 3):
        add(*tensors, value)
    assert [launch.numbers[0] for launch in library.launches] == [3, 4, 3]
    assert library.launches[1].arguments[3] == (4).to_bytes(4, "little")
    with pytest.raises(ValueError, match="alpha with alpha = 1099511627776"):
        add(*tensors, 2**40)


def test_a_workspace_that_is_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = manifests.add_entry(workspace={"bytes": "4 * N", "align": 256})
    entry["launch"][0]["args"].append({"kind": "workspace", "name": "workspace", "value": 16})
    add, library = loaded(tmp_path, entry)
    tensors = [Array(4096 * n, 8) for n in (1, 2, 3)]
    add(*tensors, 1.0, workspace=Array(40960, 64, kind="|u1"))
    for other, message in (
        (Array(40964, 64, kind="|u1"), "workspace is not aligned"),
        (Array(40960, 16, kind="|u1"), "workspace has 16 bytes, add needs 32"),
    ):
        with pytest.raises(ValueError, match=message):
            add(*tensors, 1.0, workspace=other)
    long_way_refused(monkeypatch)
    add(*tensors, 1.0, workspace=Array(81920, 64, kind="|u1"))
    assert library.launches[1].arguments[5] == (81920 + 16).to_bytes(8, "little")


def test_a_workspace_that_these_sizes_do_not_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = manifests.add_entry(workspace={"bytes": "4 * (N - 8)", "align": 256})
    launch = entry["launch"][0]
    scratch = {**launch, "args": [*launch["args"], {"kind": "workspace", "name": "w", "value": 0}]}
    entry["launch"] = [{**scratch, "when": "N > 8", "entry": "add_scratch"}, launch]
    add, library = loaded(tmp_path, entry)
    for n in (8, 8, 9, 9):
        add(*(Array(4096 * k, n) for k in (1, 2, 3)), 1.0)
    assert [x.entry for x in library.launches] == ["add", "add", "add_scratch", "add_scratch"]
    assert not library.memory
    long_way_refused(monkeypatch)
    add(*(Array(4096 * k, 8) for k in (1, 2, 3)), 1.0)
    with pytest.raises(AssertionError, match="the long way"):
        add(*(Array(4096 * k, 9) for k in (1, 2, 3)), 1.0)


def test_a_map_of_a_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = manifests.add_entry(workspace={"bytes": "64 * N", "align": 256})
    tensor_map = {
        "kind": "tensor_map", "name": "A_map", "tensor": "A", "dtype": "float32", "dims": ["N"],
        "strides": [], "box": [4], "workspace": True, "offset": "2 * N",
    }  # fmt: skip
    entry["launch"][0]["args"].append(tensor_map)
    manifests.write(tmp_path, entry)
    library = FakeLibrary(widths={3: 4, 4: 4, 5: 128})
    add = Kernel(read_records(tmp_path)[0], tmp_path, CudaBackend(LibcudaDriver(library)))
    tensors = [Array(4096 * n, 8) for n in (1, 2, 3)]
    add(*tensors, 1.0, workspace=Array(40960, 512, kind="|u1"))
    long_way_refused(monkeypatch)
    add(*tensors, 1.0, workspace=Array(81920, 512, kind="|u1"))
    assert [made[2] for made in library.maps] == [40960 + 16, 81920 + 16]


def test_threads_do_not_share_the_place_of_arguments(tmp_path: Path) -> None:
    add, library = loaded(tmp_path, manifests.add_entry())
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(200):
                add(*(Array(4096 * n, 8) for n in (number, number, number)), float(step))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n + 1,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(library.launches) == 800
    assert all(len(set(launch.arguments[:3])) == 1 for launch in library.launches)


def test_outputs_of_a_framework_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for torch: what is asked of its tensors is all that there is."""
    made: list[Any] = []

    def empty(shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
        made.append(Tensor(1 << 20 | len(made) << 8, shape))
        return made[-1]

    class Tensor:
        dtype, device = "torch.float32", SimpleNamespace(type="cuda", index=0)

        def __init__(self, address: int, shape: tuple[int, ...]) -> None:
            self.shape, self._address = shape, address

        def data_ptr(self) -> int:
            return self._address

        def stride(self) -> tuple[int, ...]:
            return (1,)

        def element_size(self) -> int:
            return 4

    Tensor.__module__ = "torch"
    Tensor.device = _Hashable(type="cuda", index=0)
    stream = SimpleNamespace(cuda_stream=77)
    cuda = SimpleNamespace(current_stream=lambda index: stream)
    torch = SimpleNamespace(empty=empty, float32="torch.float32", cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    add, library = loaded(tmp_path, manifests.add_entry())
    a, b = Tensor(4096, (300,)), Tensor(8192, (300,))
    first = add(a, b, 1.0)
    stream.cuda_stream = 78
    long_way_refused(monkeypatch)
    second = add(a, b, 1.0)
    assert [first, second] == made and first is not second
    assert [launch.stream for launch in library.launches] == [77, 78]
    assert library.launches[1].arguments[2] == second.data_ptr().to_bytes(8, "little")


class _Hashable(SimpleNamespace):
    def __hash__(self) -> int:
        return 1


def test_host_arrays_go_the_long_way(tmp_path: Path) -> None:
    add, library = loaded(tmp_path, manifests.add_entry())
    a = np.ones(8, np.float32)
    for _ in range(2):
        add(a, a, 1.0)
    assert len(library.launches) == 2 and not library.memory
    assert Repeats(add.record).look((a, a, 1.0), None) is None
