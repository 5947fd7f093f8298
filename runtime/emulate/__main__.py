"""Runs one kernel of any vendor's source file in the emulator.

    python -m tile2c.runtime.emulate FILE --target hip:gfx942 --kernel 'scale<16>' \\
        --grid 4,4 --block 16,16 --check races,memory 'float32[64,64]=random' 'float32[64,64]' int32=64

Arguments, in the kernel's order: `float32[64,64]` (zeros), `...=random`, `...=count` (0, 1, 2, ...),
`...=FILE.npy`, and `int32=5` for values. Afterwards each array is summed up on a line; `--save 1=FILE.npy`
keeps one. The file's host code is left out; a kernel template is named with its arguments.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from tile2c.runtime.dtypes import numpy_dtype
from tile2c.runtime.emulate import Argument, TensorArgument, ValueArgument, load_program
from tile2c.runtime.errors import BackendUnavailable, KernelError


def main(arguments: list[str] | None = None) -> int:
    """Returns 0, or 1 after a problem, which is told on standard error."""
    options = _parser().parse_intermixed_args(arguments)
    family, _, arch = options.target.partition(":")
    arrays: dict[int, np.ndarray[Any, Any]] = {}
    try:
        given = [_argument(text, number, arrays) for number, text in enumerate(options.arguments)]
        module = load_program(
            options.file,
            family=family,
            arch=arch,
            kernels=(options.kernel,),
            checks=frozenset(part for part in options.check.split(",") if part),
        )
        module.launch(options.kernel, options.grid, options.block, options.shared, given)
    except (BackendUnavailable, KernelError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for number, array in arrays.items():
        values = array.astype(np.float64).reshape(-1)
        shown = " ".join(f"{value:g}" for value in values[:6])
        print(f"{number}: {options.arguments[number]}  sum {values.sum():g}, starts {shown}")
    for text in options.save:
        number, _, path = text.partition("=")
        np.save(path, arrays[int(number)])
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tile2c.runtime.emulate",
        description=(__doc__ or "").replace("%", "%%"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", required=True, help="family and architecture, hip:gfx942")
    parser.add_argument("--kernel", required=True, help="its name; a template's with arguments")
    parser.add_argument("--grid", type=_triple, default=(1, 1, 1))
    parser.add_argument("--block", type=_triple, required=True)
    parser.add_argument("--shared", type=int, default=0, help="bytes of dynamic shared memory")
    parser.add_argument("--check", default="", help="races,memory")
    parser.add_argument("--save", action="append", default=[], metavar="NUMBER=FILE.npy")
    parser.add_argument("arguments", nargs="*")
    return parser


def _triple(text: str) -> tuple[int, int, int]:
    sizes = [int(part) for part in text.split(",")] + [1, 1]
    return sizes[0], sizes[1], sizes[2]


def _argument(text: str, number: int, arrays: dict[int, np.ndarray[Any, Any]]) -> Argument:
    kind, _, value = text.partition("=")
    name, _, shape = kind.rstrip("]").partition("[")
    dtype = numpy_dtype(name)
    if not shape:
        return ValueArgument(
            np.asarray(float(value) if "." in value else int(value), dtype).tobytes()
        )
    array = np.ascontiguousarray(_filled(value, tuple(map(int, shape.split(","))), dtype))
    arrays[number] = array
    return TensorArgument(f"argument {number}", array.ctypes.data, array.nbytes, True, array)


def _filled(value: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if value == "random":
        drawn = np.random.default_rng(0).standard_normal(shape)
        return (drawn * (1 if dtype.kind not in "iu" else 50)).astype(dtype)
    if value == "count":
        return np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    if value:
        kept: np.ndarray[Any, Any] = np.load(value)
        return kept.astype(dtype).reshape(shape)
    return np.zeros(shape, dtype)


if __name__ == "__main__":
    sys.exit(main())
