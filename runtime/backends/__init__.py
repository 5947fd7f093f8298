"""How kernels reach a device: one file a backend, behind the protocol of `protocol.py`."""
