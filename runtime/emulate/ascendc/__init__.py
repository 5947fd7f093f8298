"""The Ascend C model: reads a generated `.ascendc.cpp` text, writes a shared object that runs it on the CPU.

The text is compiled unchanged by the host's C++ compiler against `model/include/kernel_operator.h`.
The object exports the interface of `../abi.h`; README.md says what is modelled and what is rejected.
"""

from __future__ import annotations

from tile2c.runtime.emulate.ascendc.builder import ARCHITECTURES, build

__all__ = ["ARCHITECTURES", "build"]
