"""The project file: which kernels are generated from which sources, for which targets, to where.

reads   tile2c.toml, or `[tool.tile2c]` of pyproject.toml          writes  `Project`, every value checked
`find` looks for the file upward from a folder; `read` understands it. Mistakes are located.
"""

from tile2c.transpile.project.forms import KernelSet, Project
from tile2c.transpile.project.read import find, read

__all__ = ["KernelSet", "Project", "find", "read"]
