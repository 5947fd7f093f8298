"""Loads and launches generated kernels, on a device or in the emulator.

reads   OUT: the manifest `tile2c.json` and the files that it names          runs  kernels
`load` gives them by name; a backend (`backends/`) brings them to a device, `emulate/` is the CPU.
"""
