"""C++ programs on emulated kernels: one library that stands for a vendor's runtime and its kernels.

reads   kernel files of one target          writes  a folder: the library, a module a kernel, headers

`include/` has the vendor's header names with what launchers and small programs call; `runtime.cpp`
does it: memory is the host's, a launch runs the kernel's module and ends before it returns.
"""

from tile2c.runtime.emulate.host.library import LIBRARY, build_library

__all__ = ["LIBRARY", "build_library"]
