"""Loads and launches generated kernels, on a device or in the emulator."""
