"""The functional model of BANG C: kernel texts as they are, run on the CPU.

reads   a kernel file, `model/` (headers and sources in C++)        writes  modules in the user's cache
"""

from __future__ import annotations

from tile2c.runtime.emulate.bang.builder import build

__all__ = ["build"]
