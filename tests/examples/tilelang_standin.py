"""A stand-in for the package `tilelang`, under which an example runs its own checks on tile2c's kernels.

Only what the examples touch outside their kernels is here: `tilelang.jit` and its like hold the function and
never run a factory; calling one transpiles the file with the call's values as `-D` and loads the kernel.
Everything else of the package is `Anything`, which can be called, indexed and asked for attributes.

    install(Settings(...))      before the example is imported
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import sys
import textwrap
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import torch

TYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 float8_e4m3fn "
    "float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu int4 uint4 float4_e2m1fn"
).split()
SHORT = {"float8_e4m3": "float8_e4m3fn", "float": "float32", "half": "float16", "int": "int32"}


@dataclass
class Settings:
    """How kernels are made and run; what was done is counted here."""

    folder: Path  # where texts go; a text that is there already is taken
    target: str = "cuda:sm_90a"
    dry: bool = False  # kernels are made and their arguments bound, not run
    emulate: bool = False  # kernels run in the emulator, tensors lie in the host's memory
    kernels: list[str] = field(default_factory=list)  # called, in order
    compared: int = 0  # comparisons that the example asked for
    differences: list[str] = field(default_factory=list)  # that it only printed, or told as False


settings = Settings(Path())


class Dtype(str):
    """An element type: its name, which examples hand to torch and to factories."""

    def __call__(self, value: Any) -> Any:
        return value

    def as_torch(self) -> torch.dtype:
        return torch_type(self)

    torch = as_torch


class Symbol(str):
    """`T.dynamic("n")` in host code: a size of the run."""


class Anything:
    """Whatever the package has that examples only pass on."""

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(f"{self._name}.{name}")

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        decorated = len(args) == 1 and not keywords and inspect.isfunction(args[0])
        return args[0] if decorated else Anything(self._name)

    def __getitem__(self, key: Any) -> Any:
        return Anything(self._name)

    def __enter__(self) -> Anything:
        return self

    def __exit__(self, *why: object) -> None:
        pass

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__


@dataclass(frozen=True)
class Factory:
    """A function that makes kernels: those that stand in its lines are its own."""

    file: str
    name: str
    first: int
    last: int

    def owns(self, entry: Mapping[str, Any]) -> bool:
        return self.first <= entry["line"] <= self.last

    @property
    def hosts(self) -> frozenset[str]:
        """Parameters that are known when the kernel is built."""
        found = [entry for entry in listing(self.file) if self.owns(entry)]
        return frozenset(key for entry in found for key in entry["parameters"])


@dataclass
class PrimFunc:
    """What a factory that was run returns: the factory's name and the values it was given."""

    factory: Factory
    values: Mapping[str, Any]


def torch_type(name: Any) -> torch.dtype:
    """torch's type for a name, or the type itself."""
    if isinstance(name, torch.dtype):
        return name
    return getattr(torch, SHORT.get(str(name), str(name)))


# ---- kernels


class Jit:
    """A function under `tilelang.jit`: a factory, or a kernel in the eager style."""

    def __init__(self, function: Callable[..., Any], out_idx: Any = None) -> None:
        functools.update_wrapper(self, function)
        self.function, self.out_idx = function, out_idx
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or ""
        self.factory = Factory(file, function.__name__, first, first + len(lines) - 1)
        self.made: dict[str, Made] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        given = self._given(args, keywords)
        known = self.factory.hosts
        hosts = {name for name in given if name in known and not is_tensor(given[name])}
        tensors = {name: value for name, value in given.items() if name not in hosts}
        fixed = {name: value for name, value in given.items() if name in hosts}
        if not tensors:
            return self._kernel(fixed)
        kernel = self._kernel({**self._constants(tensors), **fixed})
        return kernel.run({name: value for name, value in tensors.items() if value is not None})

    def compile(self, *args: Any, **keywords: Any) -> Made:
        """A kernel in the eager style for sizes by name: what `T.const` declares may be among them."""
        known = inspect.signature(self.function).parameters
        own = {name: value for name, value in keywords.items() if name in known}
        rest = {name: value for name, value in keywords.items() if name not in known}
        given = {**self._given(args, own), **rest}
        return self._kernel({name: value for name, value in given.items() if not is_tensor(value)})

    def _constants(self, tensors: Mapping[str, Any]) -> dict[str, int]:
        """What `T.const` declares, from the tensors' shapes."""
        text = textwrap.dedent(inspect.getsource(self.function))
        found: dict[str, int] = {}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".const"):
                (names,) = (arg.value for arg in node.args if isinstance(arg, ast.Constant))
                found.update(dict.fromkeys(str(names).replace(",", " ").split(), -1))
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            shape = next(
                (
                    n
                    for n in ast.walk(node.annotation)
                    if isinstance(n, ast.List | ast.Tuple)
                    and all(not isinstance(e, ast.List | ast.Tuple) for e in n.elts)
                ),
                None,
            )
            value = tensors.get(node.target.id)
            if shape is None or value is None:
                continue
            for part, extent in zip(shape.elts, value.shape, strict=False):
                if isinstance(part, ast.Name) and part.id in found:
                    found[part.id] = int(extent)
        return {name: extent for name, extent in found.items() if extent >= 0}

    def get_kernel_source(self, *args: Any, **keywords: Any) -> str:
        return self.compile(*args, **keywords).get_kernel_source()

    def _given(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
        signature = inspect.signature(self.function)
        given = dict(signature.bind_partial(*args, **keywords).arguments)
        absent = {  # what tile2c takes for not known
            name: None
            for name, parameter in signature.parameters.items()
            if parameter.default is None and name not in given
        }
        return {**absent, **given}

    def _kernel(self, values: Mapping[str, Any]) -> Made:
        key = repr(sorted(values.items(), key=lambda pair: pair[0]))
        if key not in self.made:
            self.made[key] = Made(self.factory, values, self.out_idx)
        return self.made[key]


@functools.cache
def listing(file: str, *defines: str) -> list[dict[str, Any]]:
    """What `tile2c FILE --list` says with these `-D`."""
    from tile2c.transpile.cli.main import main

    words = StringIO()
    with redirect_stdout(words):
        options = [part for define in defines for part in ("-D", define)]
        main([file, "--list", "--format", "json", "--target", settings.target, *options])
    return json.loads(words.getvalue() or "[]")


class Made:
    """A kernel for fixed values of its factory's parameters."""

    latency = ref_latency = 1.0
    config: Mapping[str, Any] = {}

    def __init__(self, factory: Factory, values: Mapping[str, Any], out_idx: Any) -> None:
        self.name, self.values = factory.name, values
        self.kernel = _built(factory, values)
        self.record = self.kernel.record
        count = len(self.record.arguments)
        listed = [] if out_idx is None else [out_idx] if isinstance(out_idx, int) else list(out_idx)
        self.out_idx = [index % count for index in listed]

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        names = [argument.name for argument in self.record.arguments]
        if len(args) < len(names) - len(keywords):
            outs = {names[index] for index in self.out_idx}
            outs |= set() if outs else {a.name for a in self.record.arguments if a.is_out}
            names = [name for name in names if name not in outs]
        keywords.pop("stream", None)
        return self.run({**dict(zip(names, args, strict=False)), **keywords})

    def run(self, values: Mapping[str, Any]) -> Any:
        given = {name: _plain(value) for name, value in values.items()}
        made = {
            argument.name: _empty(argument, self._sizes(given))
            for argument in self.record.arguments
            if argument.kind == "tensor" and argument.name not in given and not argument.is_out
        }
        if settings.dry:
            from tile2c.runtime.binding import bind

            bound = bind(self.record, (), {**given, **made})
            fresh = {name: bound.tensors[name].owner for name in bound.fresh}
        else:
            names = [a.name for a in self.record.arguments if a.is_out and a.name not in given]
            found = self.kernel(**given, **made)
            several = found if isinstance(found, tuple) else () if found is None else (found,)
            fresh = dict(zip(names, several, strict=True))
        settings.kernels.append(self.name)
        results = {**fresh, **made}
        if self.out_idx:
            wanted = [self.record.arguments[index].name for index in self.out_idx]
            outputs = [results[name] if name in results else values[name] for name in wanted]
        else:
            outputs = [results[a.name] for a in self.record.arguments if a.name in results]
        return outputs[0] if len(outputs) == 1 else outputs or None

    def _sizes(self, given: Mapping[str, Any]) -> dict[str, int]:
        """Sizes that stand alone in a shape."""
        found: dict[str, int] = {}
        for argument in self.record.arguments:
            if argument.name in given and argument.kind == "tensor":
                pairs = zip(argument.shape, given[argument.name].shape, strict=False)
                found.update({str(size): extent for size, extent in pairs if isinstance(size, str)})
        return found

    def get_kernel_source(self, *args: Any, **keywords: Any) -> str:
        return self.kernel.path.read_text(encoding="utf-8")

    @property
    def kernel_source(self) -> str:
        return self.get_kernel_source()

    def get_profiler(self, *args: Any, **keywords: Any) -> Profiler:
        return Profiler(self)


def _built(factory: Factory, values: Mapping[str, Any]) -> Any:
    """The kernel of tile2c for these values; its text is made unless it is there."""
    import tile2c

    file, name = factory.file, factory.name
    defines = {f"{name}.{key}": spelled(value) for key, value in values.items()}
    told = f"{Path(file).name} {name} {sorted(defines.items())}"
    stem = f"{Path(file).stem}-{name}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"
    folder = settings.folder / stem
    backend = "emulate" if settings.dry or settings.emulate else "cuda"
    if not (folder / "tile2c.json").is_file():
        found = listing(file, *(f"{key}={value!r}" for key, value in defines.items()))
        names = tuple(dict.fromkeys(entry["name"] for entry in found if factory.owns(entry)))
        if any(entry["name"] in names and not factory.owns(entry) for entry in found):
            # Another factory's kernel has the name: with its values known too, both get longer ones.
            defines |= {key: spelled(value) for key, value in values.items()}
            found = listing(file, *(f"{key}={value!r}" for key, value in defines.items()))
            names = tuple(dict.fromkeys(entry["name"] for entry in found if factory.owns(entry)))
        tile2c.build(file, folder, settings.target, defines, names, backend=backend)
    found = tile2c.load(folder, target=settings.target, backend=backend)
    if len(found) != 1:
        raise LookupError(f"{len(found)} kernels are made for {name}: {', '.join(found)}")
    (kernel,) = found.values()
    return kernel


def spelled(value: Any) -> Any:
    """A value as `-D` takes it."""
    if isinstance(value, Symbol):
        return "dynamic"
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, Dtype):
        return str(value)
    if isinstance(value, torch.Tensor):
        return value.item()
    return value


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 0


def _plain(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _empty(argument: Any, sizes: Mapping[str, int]) -> torch.Tensor:
    from tile2c.runtime.expressions import evaluate

    shape = [evaluate(extent, sizes) for extent in argument.shape]
    device = "cpu" if settings.dry or settings.emulate else "cuda"
    return torch.zeros(shape, dtype=torch_type(argument.dtype), device=device)


# ---- what examples ask of a kernel


class Profiler:
    """`kernel.get_profiler()`: it compares, and measures nothing."""

    def __init__(self, made: Made) -> None:
        self.made = made

    def _inputs(self) -> list[torch.Tensor]:
        """Random tensors for every parameter that is no output."""
        made: list[torch.Tensor] = []
        outs = set(self.made.out_idx)
        for index, argument in enumerate(self.made.record.arguments):
            if index in outs or (not outs and argument.is_out):
                continue
            plain = _empty(argument, {})
            if plain.dtype.is_floating_point:
                made.append(torch.randn(plain.shape, device=plain.device).to(plain.dtype))
            else:
                made.append(torch.randint(-2, 3, plain.shape, device=plain.device).to(plain.dtype))
        return made

    def assert_allclose(
        self, reference: Callable[..., Any], input_tensors: Any = None, *args: Any, **keywords: Any
    ) -> None:
        inputs = list(input_tensors) if input_tensors is not None else self._inputs()
        wanted, found = _several(reference(*inputs)), _several(self.made(*inputs))
        limits = {name: keywords.get(name, 1e-2) for name in ("rtol", "atol")}
        limits["max_mismatched_ratio"] = keywords.get("max_mismatched_ratio", 0.01)
        for number, (left, right) in enumerate(zip(found, wanted, strict=False)):
            if left is None or right is None:
                continue
            try:
                close(left, right, **limits)
            except AssertionError:
                wide = [x.double() if x.dtype.is_floating_point else x for x in inputs]
                exact = _several(reference(*wide))[number]
                if _off(left, exact) > _off(right, exact):
                    raise  # farther from the exact result than the reference in the tensors' type

    def do_bench(self, *args: Any, **keywords: Any) -> float:
        return 1.0

    @property
    def func(self) -> Made:
        return self.made

    def _get_inputs(self, *args: Any, **keywords: Any) -> list[torch.Tensor]:
        return self._inputs()

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **keywords: 1.0

    def __call__(self, *args: Any) -> Any:
        return self.made(*args)


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _off(value: torch.Tensor, exact: torch.Tensor) -> float:
    return float((value.double() - exact.double()).norm())


def close(
    found: torch.Tensor,
    wanted: torch.Tensor,
    rtol: float = 1e-2,
    atol: float = 1e-3,
    max_mismatched_ratio: float = 0.001,
    *args: Any,
    **keywords: Any,
) -> None:
    """`torch_assert_close` of the package: a part of the elements may be off."""
    settings.compared += 1
    if settings.dry:
        return
    found, wanted = found.float(), wanted.float()
    far = (found - wanted).abs() > atol + rtol * wanted.abs()
    far |= found.isnan() != wanted.isnan()
    share = far.float().mean().item()
    assert share <= max_mismatched_ratio, f"{share:.4%} of the elements differ"


def do_bench(*args: Any, **keywords: Any) -> float:
    """Measures nothing."""
    return 1.0


# ---- the package's functions


def jit(function: Any = None, *args: Any, out_idx: Any = None, **keywords: Any) -> Any:
    """`@tilelang.jit`, with and without arguments."""
    if isinstance(function, PrimFunc):
        return compile_(function, out_idx=out_idx)
    if callable(function):
        return Jit(function, out_idx)
    return lambda inner: jit(inner, out_idx=out_idx)


def autotune(function: Any = None, *args: Any, **keywords: Any) -> Any:
    """`@tilelang.autotune`: nothing is tuned."""
    return function if isinstance(function, Jit) else lambda inner: inner


def compile_(function: Any, *args: Any, out_idx: Any = None, **keywords: Any) -> Any:
    """`tilelang.compile(factory(...), out_idx=...)`."""
    if isinstance(function, PrimFunc):
        return Made(function.factory, function.values, out_idx)
    return jit(function, out_idx=out_idx)


def prim_func(function: Callable[..., Any]) -> PrimFunc:
    """`@T.prim_func` in a factory that host code runs itself: its caller's parameters are the values."""
    frame = sys._getframe(1)
    code, values = frame.f_code, inspect.getargvalues(frame)
    named = {name: values.locals[name] for name in values.args}
    inner = code.co_name != "<module>"
    lines, first = inspect.getsourcelines(code if inner else function)
    name = code.co_name if inner else function.__name__
    return PrimFunc(Factory(code.co_filename, name, first, first + len(lines) - 1), named)


def fp8_type(kind: str = "e4m3") -> Dtype:
    return Dtype("float8_e5m2" if kind == "e5m2" else "float8_e4m3fn")


def _ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def _symbols(names: str, *args: Any) -> Any:
    found = [Symbol(name) for name in names.replace(",", " ").split()]
    return found[0] if len(found) == 1 else found


def attention_of_sequences(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    starts_q: torch.Tensor,
    starts_k: torch.Tensor,
    *args: Any,
    causal: bool = False,
    softmax_scale: float | None = None,
    **keywords: Any,
) -> torch.Tensor:
    """What `flash_attn_varlen_func` computes, sequence after sequence: q, k, v are (total, heads, dim)."""
    out = torch.zeros(*q.shape[:2], v.shape[2], dtype=q.dtype, device=q.device)
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    for i in range(len(starts_q) - 1):
        rows, columns = (slice(int(s[i]), int(s[i + 1])) for s in (starts_q, starts_k))
        repeats = q.shape[1] // k.shape[1]
        keys, values = (x[columns].float().repeat_interleave(repeats, 1) for x in (k, v))
        scores = torch.einsum("qhd,khd->hqk", q[rows].float(), keys) * scale
        if causal:  # the last query sees the last key
            count, length = scores.shape[1:]
            seen = torch.ones(count, length, dtype=torch.bool, device=q.device)
            scores = scores.masked_fill(~seen.tril(length - count), float("-inf"))
        weights = scores.softmax(-1).nan_to_num(0)
        out[rows] = torch.einsum("hqk,khd->qhd", weights, values).to(q.dtype)
    return out


def attention_of_cache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    cache_seqlens: torch.Tensor,
    block_table: torch.Tensor | None = None,
    **keywords: Any,
) -> torch.Tensor:
    """What `flash_attn_with_kvcache` computes for one new token: q is (batch, 1, heads, dim)."""
    out = torch.zeros(*q.shape[:3], v_cache.shape[-1], dtype=q.dtype, device=q.device)
    for i, length in enumerate(cache_seqlens.tolist()):
        keys, values = (
            (x[i] if block_table is None else x[block_table[i].long()].flatten(0, 1))[:length]
            for x in (k_cache, v_cache)
        )
        ends = (torch.tensor([0, n], device=q.device) for n in (1, length))
        out[i] = attention_of_sequences(q[i], keys, values, *ends)
    return out


LANGUAGE: dict[str, Any] = {
    **{name: Dtype(name) for name in (*TYPES, *SHORT)},
    "dtype": Dtype,
    "prim_func": prim_func,
    "dynamic": _symbols,
    "symbolic": _symbols,
    "ceildiv": _ceildiv,
    "cdiv": _ceildiv,
    "Tensor": Anything("Tensor"),
}
NAMES: dict[str, dict[str, Any]] = {
    "tilelang": {
        "jit": jit,
        "lazy_jit": jit,
        "autotune": autotune,
        "compile": compile_,
        "cdiv": _ceildiv,
        "ceildiv": _ceildiv,
        "next_power_of_2": lambda n: 1 << (n - 1).bit_length(),
        "JITKernel": Made,
    },
    "tilelang.language": LANGUAGE,
    "tilelang.language.fp8": {
        "determine_fp8_type": fp8_type,
        "determine_torch_fp8_type": lambda kind="e4m3": torch_type(fp8_type(kind)),
    },
    "tilelang.language.dtypes": {
        "dtype": Dtype,
        "_TORCH_DTYPE_TO_STR": {torch_type(name): name for name in TYPES if hasattr(torch, name)},
    },
    "tilelang.autotuner": {"autotune": autotune, "__all__": ["autotune"]},
    "tilelang.profiler": {"do_bench": do_bench},
    "tilelang.utils.tensor": {"torch_assert_close": close},
    "tilelang.testing": {"torch_assert_close": close, "set_random_seed": torch.manual_seed},
    "flash_attn": {
        "flash_attn_varlen_func": attention_of_sequences,
        "flash_attn_with_kvcache": attention_of_cache,
    },
    "tilelang.math": {"next_power_of_2": lambda n: 1 << (n - 1).bit_length(), "cdiv": _ceildiv},
}


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        known = NAMES.get(self.__name__, {})
        if name in known:
            return known[name]
        if f"{self.__name__}.{name}" in NAMES:
            return importlib.import_module(f"{self.__name__}.{name}")
        if name == "__all__":
            return sorted(known)
        return Anything(f"{self.__name__}.{name}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        package = name.split(".")[0]
        if package not in ("tilelang", "tvm", "flash_attn"):
            return None
        if package == "flash_attn" and importlib.machinery.PathFinder.find_spec(package):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def install(wanted: Settings) -> None:
    """From here on `import tilelang` finds the stand-in."""
    global settings
    settings = wanted
    sys.meta_path.insert(0, _Finder())
    _count(torch.testing, "assert_close")
    _count(torch, "allclose")


def _count(owner: Any, name: str) -> None:
    """Comparisons of torch's are counted; a dry run has nothing to compare."""
    plain = getattr(owner, name)

    @functools.wraps(plain)
    def counted(*args: Any, **keywords: Any) -> Any:
        settings.compared += 1
        if settings.dry:
            return True if owner is torch else 0.0
        before = len(settings.differences)
        found = plain(*args, **keywords)
        if owner not in (torch, torch.testing):
            del settings.differences[before:]  # what it found by the way is its own affair
            _judge(name, args)
        elif found is False:
            settings.differences.append(f"{name} is False")
        return found

    setattr(owner, name, counted)


def _judge(name: str, args: tuple[Any, ...]) -> None:
    """What an example may only print: whether two tensors are the same within 2 % of their size."""
    pair = [value.float() for value in args if isinstance(value, torch.Tensor)][:2]
    if len(pair) < 2 or pair[0].shape != pair[1].shape:
        return
    left, right = (value.nan_to_num(0, 0, 0) for value in pair)
    off = (left - right).norm() / (right.norm() + 1e-6)
    if off > 0.02 or (pair[0].isnan() != pair[1].isnan()).any():
        settings.differences.append(f"{name}: tensors are {off:.3g} of their size apart")


def count_comparisons(module: types.ModuleType) -> None:
    """The module's own comparing functions are counted too."""
    for name, value in list(vars(module).items()):
        words = ("assert", "compare", "similar", "calc_diff", "check_")
        own = inspect.isfunction(value) and not hasattr(value, "__wrapped__")
        if own and any(word in name for word in words):
            _count(module, name)
