"""Where things lie in OUT: kernel files, bases, maps, modules, the manifest. All paths use `/`."""

from __future__ import annotations

from pathlib import PurePosixPath

MANIFEST = "tile2c.json"
STATE = ".tile2c"


def kernel_file(name: str, target: str, suffix: str, *, several: bool) -> str:
    """`gemm.cu`, or `cuda_sm_90a/gemm.cu` when a run names several targets."""
    file = f"{name}{suffix}"
    return f"{target_folder(target)}/{file}" if several else file


def target_folder(target: str) -> str:
    """`cuda:sm_90a` as a folder name."""
    return target.replace(":", "_")


def base_file(file: str) -> str:
    """Where the generated text that `file` started from is kept."""
    return f"{STATE}/base/{file}"


def map_file(file: str) -> str:
    """Where the lines of `file` are told with their places in the source."""
    return f"{STATE}/map/{file}.json"


def module_file(file: str, suffix: str, arch: str, module_suffix: str) -> str:
    """`gemm.cu` compiled for `sm_80` is `gemm.sm_80.cubin`, beside it."""
    path = PurePosixPath(file)
    return str(path.with_name(f"{path.name.removesuffix(suffix)}.{arch}{module_suffix}"))
