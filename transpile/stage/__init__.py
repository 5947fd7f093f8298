"""Reads a `Source` and writes the normal form: one plain prim_func for each kernel of the file.

Host-level Python is evaluated away, device code is traced, every tile statement gets its canonical
spelling. `normalize` is the way in; docs/normal-form.md has the grammar.
"""

from tile2c.transpile import quick_nodes

quick_nodes.import_libcst()  # before any of these modules does

from tile2c.transpile.stage.defines import (  # noqa: E402
    DefineError,
    Defines,
    NamesMet,
    Promise,
    UnknownName,
    parse_defines,
)
from tile2c.transpile.stage.normalize import (  # noqa: E402
    KernelListing,
    NormalKernel,
    list_kernels,
    normalize,
)
from tile2c.transpile.stage.origins import Origin  # noqa: E402

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
