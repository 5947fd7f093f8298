"""Tuning is not done here: what a program would try first is what a kernel is made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.stage.values import (
    Closure,
    JitFunction,
    NotReady,
    Poisoned,
    Value,
)

if TYPE_CHECKING:
    from tile2c.transpile.stage.language import Language

# Methods of a tuner that give the tuner again.
CHAINED = frozenset(("set_compile_args", "set_profile_args", "run"))


def first_config(ev: Language, configs: Value, bound: dict[str, Value]) -> dict[str, Value]:
    """The first of the configurations; a callable gets those of its parameters that are bound."""
    try:
        if isinstance(configs, Closure):
            spec = configs.node.args
            names = [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
            given = {key: bound[key] for key in names if key in bound}
            configs = ev.invoke(configs, [], given, configs.node)
        if isinstance(configs, list) and configs and isinstance(configs[0], dict):
            return dict(configs[0])
        if isinstance(configs, dict):
            columns = {k: v for k, v in configs.items() if isinstance(v, list | tuple) and v}
            return {key: column[0] for key, column in columns.items()}
    except (InputError, Poisoned, NotReady, IndexError):
        pass
    return {}


def tuner(args: list[Value], kwargs: dict[str, Value]) -> JitFunction | None:
    """`AutoTuner.from_kernel(kernel=factory, configs=...)`; None where the factory is unknown."""
    kernel = kwargs.get("kernel", args[0] if args else None)
    configs = kwargs.get("configs", args[1] if len(args) > 1 else None)
    if isinstance(kernel, JitFunction):
        return JitFunction(kernel.inner, configs)
    return JitFunction(kernel, configs) if isinstance(kernel, Closure) else None
