"""Chooses the backend: the one asked for, or the device that is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tile2c.runtime.backends.protocol import Backend, Module, Session
from tile2c.runtime.errors import BackendUnavailable
from tile2c.runtime.records import KernelRecord
from tile2c.runtime.tensors import TensorView

EMULATE = "emulate"


def _cuda() -> Backend:
    from tile2c.runtime.backends.cuda import CudaBackend

    return CudaBackend()


def _vendor(family: str) -> Callable[[], Backend]:
    def make() -> Backend:
        from tile2c.runtime.backends.vendor import VendorBackend

        return VendorBackend(family)

    return make


def _corex() -> Backend:
    from tile2c.runtime.backends.shared_object import CorexBackend

    return CorexBackend()


def _ascend() -> Backend:
    from tile2c.runtime.backends.shared_object import AscendBackend

    return AscendBackend()


def _bang() -> Backend:
    from tile2c.runtime.backends.shared_object import BangBackend

    return BangBackend()


# Family -> how to reach its device. Each raises BackendUnavailable with the reason.
DEVICES: dict[str, Callable[[], Backend]] = {
    "cuda": _cuda,
    **{family: _vendor(family) for family in ("hip", "dcu", "musa", "maca", "ppu")},
    "corex": _corex,
    "ascendc": _ascend,
    "bang": _bang,
}


def choose(
    name: str | None, targets: Sequence[str], checks: tuple[str, ...], *, later: bool = False
) -> Backend:
    """The backend for kernels of these targets; raises BackendUnavailable or ValueError.

    With `later`, BackendUnavailable is raised when a kernel is first used.
    """
    try:
        return _chosen(name, targets, checks)
    except BackendUnavailable as error:
        if not later:
            raise
        return AbsentBackend(error)


class AbsentBackend:
    """Stands where no device is: kernels can be looked at, not run."""

    name = "none"

    def __init__(self, error: BackendUnavailable) -> None:
        self._error = error

    def select(self, targets: Sequence[str]) -> str | None:
        return next(iter(targets), None)

    def module(self, record: KernelRecord, folder: Path, *, may_compile: bool) -> Module:
        raise self._error

    def session(self, tensors: Sequence[TensorView], stream: object | None) -> Session:
        raise self._error


def _chosen(name: str | None, targets: Sequence[str], checks: tuple[str, ...]) -> Backend:
    families = list(dict.fromkeys(target.partition(":")[0] for target in targets))
    if name == EMULATE:
        from tile2c.runtime.backends.emulate import EmulateBackend

        several = sorted(set(targets))
        if len(several) > 1:
            raise ValueError(
                f"the folder holds {', '.join(several)}: the emulator needs target= to choose"
            )
        return EmulateBackend(checks)
    if name is not None:
        return _fitting(_device(name), targets)
    reasons: list[str] = []
    for family in families:
        try:
            return _fitting(_device(family), targets)
        except BackendUnavailable as error:
            reasons.append(str(error))
    raise BackendUnavailable(
        f'{"; ".join(reasons)}. backend="emulate" or TILE2C_BACKEND=emulate runs kernels on the CPU'
    )


def _device(name: str) -> Backend:
    make = DEVICES.get(name) or _added(name)
    if make is None:
        known = ", ".join((*DEVICES, EMULATE))
        raise BackendUnavailable(f"no backend {name!r} here; known: {known}")
    return make()


def _added(name: str) -> Callable[[], Backend] | None:
    """The backend of a family that a package adds: `backend()` in the module of its targets."""
    from tile2c.transpile.targets.registry import plug_in

    make: Callable[[], Backend] | None = getattr(plug_in(name), "backend", None)
    return make


def _fitting(backend: Backend, targets: Sequence[str]) -> Backend:
    if backend.select(targets) is None:
        raise BackendUnavailable(
            f"the {backend.name} device here runs none of {', '.join(sorted(set(targets)))}"
        )
    return backend
