"""How a family's kernels are launched from C++: names of its runtime interface. Data, no passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from tile2c.transpile.record import record

# Element types that C itself has, as the header of a launcher spells them.
PLAIN_TYPES: Mapping[str, str] = {
    "bool": "bool",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "float32": "float",
    "tfloat32": "float",
    "float64": "double",
}


@record(kw_only=True)
class Host:
    """The runtime interface of a family, as far as a launcher calls it."""

    api: str  # what its functions start with: cuda
    headers: tuple[str, ...]  # cuda_runtime_api.h
    stream: str = ""  # the struct behind its streams: CUstream_st; "": not public, `void*` is taken
    # Element type -> the vendor's struct, which headers only declare. Of one that is not public the
    # launcher takes `void*`: to declare what is no struct would break the programs that include it.
    structs: Mapping[str, str] = field(default_factory=dict)
    # Scalar type -> (header, function from float); without one the launcher rounds by itself.
    narrow: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # How kernels are declared. Where the address that stands for a kernel is a name of the compiler's
    # own (clang's CUDA mode), only a declaration as a kernel, in the vendor's language, finds it.
    kernel: str = "void"
    multiprocessors: str = ""  # the device's attribute: how many it has, where grids depend on it
    shared_limit: str  # the device's attribute: shared memory that one block can have
    compile: str  # command for the launcher, with {file}
    together: str  # how the kernel's file gets into the same program, with {file} and {stem}
    most_blocks: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    most_threads: int | None = None  # of a grid in one dimension, where that is limited
    default_shared: int  # bytes of dynamic shared memory that need no leave
    compute_capability: bool = False  # devices say a version, and a text wants at least one
    tensor_maps: bool = False
    clusters: bool = False
    errors: str = ""  # whose errors a launcher returns, where the prefix does not say it
    stream_name: str = ""  # the type of its streams, where it is not apiStream_t
    stream_is_void: bool = False  # that type is `void*`
    launcher: str = ".cpp"  # how the launcher's file ends, where the vendor's compiler asks for it
    # Element type -> how kernels call it, where they take pointers to elements of the vendor's types.
    elements: Mapping[str, str] | None = None
    # Types of scalars that no program can hand over, with the reason.
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def stream_type(self) -> str:
        """cudaStream_t"""
        return self.stream_name or f"{self.api}Stream_t"

    def for_arch(self, arch: str) -> Host:
        """With the architecture in both commands; {{file}} becomes {file}."""
        compile, together = self.compile.format(arch=arch), self.together.format(arch=arch)
        return replace(self, compile=compile, together=together)
