"""The Ascend C model: reads a `.ascendc.cpp` text, writes a shared object that runs it on the CPU.

The host's C++ compiler takes the text unchanged, with `model/include/kernel_operator.h`. The object
exports the interface of `../abi.h`; README.md says what is modelled and what is rejected.
"""

from __future__ import annotations

from tile2c.runtime.emulate.ascendc.builder import ARCHITECTURES, build, kernel_names

__all__ = ["ARCHITECTURES", "build", "kernel_names"]
