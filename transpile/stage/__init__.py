"""Reads a `Source` and writes the normal form: one plain prim_func for each kernel of the file.

Host-level Python is evaluated away, device code is traced, every tile statement gets its canonical
spelling. `normalize` is the way in; docs/normal-form.md has the grammar.
"""

import tile2c.transpile.quick_nodes  # noqa: F401 -- before any module imports libcst
from tile2c.transpile.stage.defines import (
    DefineError,
    Defines,
    NamesMet,
    Promise,
    UnknownName,
    parse_defines,
)
from tile2c.transpile.stage.normalize import KernelListing, NormalKernel, list_kernels, normalize
from tile2c.transpile.stage.origins import Origin

__all__ = [
    "DefineError",
    "Defines",
    "KernelListing",
    "NamesMet",
    "NormalKernel",
    "Origin",
    "Promise",
    "UnknownName",
    "list_kernels",
    "normalize",
    "parse_defines",
]
