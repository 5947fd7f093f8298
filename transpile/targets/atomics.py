"""Atomic functions that CUDA and HIP spell alike."""

from __future__ import annotations

_WIDE = "unsigned long long"


def integer_atomics() -> dict[tuple[str, str], tuple[str, str]]:
    """(operation, element type) -> C function, and the type to take the address as ("" as it is)."""
    table: dict[tuple[str, str], tuple[str, str]] = {}
    for dtype in ("int32", "uint32", "int64", "uint64"):
        # two's complement sums and bits are the same signed or not
        carrier = _WIDE if dtype == "int64" else ""
        table["add", dtype] = ("atomicAdd", carrier)
        table["or", dtype] = ("atomicOr", carrier)
        table["exchange", dtype] = ("atomicExch", carrier)
        table["max", dtype] = ("atomicMax", "")
        table["min", dtype] = ("atomicMin", "")
    table["exchange", "float32"] = ("atomicExch", "")
    return table
