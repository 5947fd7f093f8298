"""Normal form to tile IR: types, regions and the checks of the language.

reads   a normalized kernel (`source.NormalKernel`: libcst module, origins)
writes  `forms.Function`, and diagnostics (2xx expressions, 3xx tile statements, 4xx launch)
"""

from tile2c.transpile.ir.build.module import build

__all__ = ["build"]
