"""Compiles a model's own sources once, and kernel texts together with it, in the user's cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tile2c.runtime.emulate.compiler import (
    cache_folder,
    compiler_state,
    find_compiler,
    told_if_slow,
)
from tile2c.runtime.emulate.objects import compile_unit, digest
from tile2c.transpile.user_cache import is_kept

_EMULATE = Path(__file__).resolve().parent.parent
_SHARED = _EMULATE / "cores"
# The compilers of the vendors refuse a narrowing conversion in braces where g++ only warns.
COMMON = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-Werror=narrowing")
KERNEL_FLAGS = (*COMMON, "-O1", "-fno-strict-aliasing", "-Wno-unknown-pragmas")
_OWN_FLAGS = (*COMMON, "-O2")
# What is missing is told now, not when the module is loaded.
_LINK = (*COMMON, "-shared", "-Wl,-z,defs")
_LONG = {"calls"}  # hundreds of functions, which a higher level compiles twice as long for little


@dataclass(frozen=True)
class Model:
    """`folder` holds its sources, and its headers in `include`; `name` is its folder in the cache,
    `flags` are those of texts alone, which the linker does not see."""

    name: str
    folder: Path
    flags: tuple[str, ...] = ()

    def built(
        self,
        unit: str,
        file_name: str,
        flags: Sequence[str] = (),
        *,
        header: str = "",
        macros: Sequence[str] = (),
    ) -> Path:
        """The shared object of a translation unit. `header` is one that texts include: it is read
        beforehand, with these macros, and found by the name prepared.h.

        Raises CompileError with the compiler's messages, BackendUnavailable without a compiler.
        """
        compiler = find_compiler()
        objects, prepared = self._parts(compiler, header, macros)
        names = [path.name for path in objects]
        words = (*KERNEL_FLAGS, *self.flags, *macros)
        key = digest([unit, *words, *flags, *names, _state(self)])
        target = self._cache() / f"{key}.so"
        if not is_kept(target):
            own = (*words, *prepared, *self._includes(), *flags)
            with TemporaryDirectory(prefix="tile2c-") as folder:
                made = Path(folder, "text.o")
                compile_unit(compiler, (*own, "-c"), unit, made, [], file_name)
                linked = [str(path) for path in (made, *objects)]
                compile_unit(compiler, _LINK, "", target, [*linked, "-ldl"], file_name)
        return target

    def sources(self) -> list[Path]:
        """The model's files and the shared ones that it is made of."""
        folders = (self.folder, _SHARED)
        found = [path for folder in folders for path in sorted(folder.rglob("*"))]
        return [path for path in found if path.suffix in (".h", ".cpp")] + [
            _EMULATE / "abi.h",
            _EMULATE / "include" / "emulate" / "numbers.h",
        ]

    def _parts(
        self, compiler: str, header: str, macros: Sequence[str]
    ) -> tuple[tuple[Path, ...], tuple[str, ...]]:
        """The model's objects, and flags that find the headers; made beside each other."""
        with ThreadPoolExecutor(1) as beside:
            prepared = beside.submit(self._prepared, compiler, header, macros)
            return _objects(self, compiler), prepared.result()

    def _prepared(self, compiler: str, header: str, macros: Sequence[str]) -> tuple[str, ...]:
        """Where the compiler finds the headers already read, which takes most of its time."""
        if not header:
            return ()
        key = digest([_state(self), compiler_state(), *KERNEL_FLAGS, *self.flags, *macros])
        folder = self._cache() / f"headers-{key}"
        target = folder / "prepared.h.gch"
        if not is_kept(target):
            words = (*KERNEL_FLAGS, *self.flags, *macros)
            flags = (*words, "-x", "c++-header", *self._includes())
            compile_unit(compiler, flags, f'#include "{header}"\n', target, [], header)
        return (f"-I{folder}",)

    def _includes(self) -> tuple[str, ...]:
        places = (self.folder / "include", self.folder, _SHARED / "include")
        return tuple(f"-I{place}" for place in (*places, _EMULATE / "include", _EMULATE))

    def _cache(self) -> Path:
        return cache_folder() / self.name


@cache
def _state(model: Model) -> str:
    """A digest of every source of the model."""
    return digest([path.read_text("utf-8") for path in model.sources()])


@cache
def _objects(model: Model, compiler: str) -> tuple[Path, ...]:
    """The objects of the model's own sources, compiled once for each version of it."""
    key = digest([_state(model), compiler_state(), *_OWN_FLAGS])

    sources = [path for path in model.sources() if path.suffix == ".cpp"]
    targets = {path: model._cache() / f"{path.stem}-{key}.o" for path in sources}

    def make(source: Path) -> None:
        level = ("-O1",) if source.stem in _LONG else ()
        flags = (*_OWN_FLAGS, *level, "-c", *model._includes())
        text = source.read_text("utf-8")
        compile_unit(compiler, flags, text, targets[source], [], source.name)

    missing = [source for source, target in targets.items() if not is_kept(target)]
    if missing:
        with told_if_slow(), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(make, missing))
    return tuple(targets.values())


def quoted(text: str) -> str:
    """As a string of C++."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
