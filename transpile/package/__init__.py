"""tile2c: turns tile programs into standalone, readable kernels, and runs them."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("tile2c")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0.1.0"
