"""Launch code for a kernel: KERNEL.h and KERNEL_launch.cpp, plain C++ beside the kernel's file.

reads   a manifest entry and the target's runtime interface          writes  two texts
The entry is all there is to know, so a launcher also fits a kernel that somebody has edited.
`write` is the way in.
"""

from tile2c.transpile.render.launcher.launcher import write

__all__ = ["write"]
