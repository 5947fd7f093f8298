"""Element types: name, kind, width. One object per type, compared by name."""

from __future__ import annotations

from typing import Literal

from tile2c.transpile.record import record

Kind = Literal["float", "int", "uint", "bool", "handle"]


@record
class DType:
    """One element type; `bits` counts storage of one element (4-bit types are packed in pairs)."""

    name: str
    kind: Kind
    bits: int

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def bytes(self) -> int:
        """Bytes of one element; raises for types packed below a byte."""
        if self.bits % 8:
            raise ValueError(f"{self.name} is packed below a byte")
        return self.bits // 8

    def __str__(self) -> str:
        return self.name


def _table() -> dict[str, DType]:
    found = {"bool": DType("bool", "bool", 8), "handle": DType("handle", "handle", 64)}
    for bits in (4, 8, 16, 32, 64):
        found[f"int{bits}"] = DType(f"int{bits}", "int", bits)
        found[f"uint{bits}"] = DType(f"uint{bits}", "uint", bits)
    floats = {
        "float16": 16,
        "bfloat16": 16,
        "float32": 32,
        "float64": 64,
        "tfloat32": 32,
        "float8_e4m3fn": 8,
        "float8_e4m3fnuz": 8,
        "float8_e5m2": 8,
        "float8_e5m2fnuz": 8,
        "float8_e8m0fnu": 8,
        "float8_e3m4": 8,
        "float4_e2m1fn": 4,
    }
    for name, bits in floats.items():
        found[name] = DType(name, "float", bits)
    return found


DTYPES: dict[str, DType] = _table()

BOOL = DTYPES["bool"]
INT32 = DTYPES["int32"]
INT64 = DTYPES["int64"]
FLOAT16 = DTYPES["float16"]
BFLOAT16 = DTYPES["bfloat16"]
FLOAT32 = DTYPES["float32"]
FLOAT64 = DTYPES["float64"]
