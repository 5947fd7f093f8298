"""A program's text in one of the styles that people write."""

from __future__ import annotations

from textwrap import indent

from tile_programs import Tensor, TileProgram

TAB = "    "


def whole(program: TileProgram) -> str:
    return {"plain": _plain, "lazy": _lazy, "eager": _eager}[program.shape.style](program)


def used(program: TileProgram, letter: str) -> bool:
    return any(letter in tensor.dims for tensor in program.tensors)


def _constants(program: TileProgram) -> str:
    """Tile extents and the sizes that are fixed."""
    lines = [f"block_{letter} = {extent}" for letter, extent in program.shape.tile.items()]
    for letter, extent in program.shape.sizes.items():
        if letter not in program.shape.run_time:
            lines.append(f"{letter} = {extent}")
    return "\n".join(lines) + "\n"


def _dynamic(program: TileProgram, maker: str) -> str:
    return "".join(
        f'{letter} = {maker}("{letter}")\n'
        for letter in "MNK"
        if letter in program.shape.run_time and used(program, letter)
    )


def annotation(tensor: Tensor) -> str:
    dims = ", ".join(tensor.dims)
    comma = "," if len(tensor.dims) == 1 else ""
    return f'T.Tensor(({dims}{comma}), "{tensor.dtype}")'


def _signature(program: TileProgram, name: str) -> str:
    parameters = "".join(f"    {t.name}: {annotation(t)},\n" for t in program.tensors)
    return f"def {name}(\n{parameters}):\n"


def _launches(program: TileProgram) -> str:
    parts = []
    for head, statements in zip(program.heads, program.launches, strict=True):
        body = "\n".join("\n".join(lines) for lines in statements) or "pass"
        parts.append(f"{head}\n{indent(body, TAB)}")
    return "\n".join(parts) + "\n"


def _plain(program: TileProgram) -> str:
    return (
        _constants(program)
        + _dynamic(program, "T.dynamic")
        + "\n\n@T.prim_func\n"
        + _signature(program, program.name)
        + indent(_launches(program), TAB)
    )


def _lazy(program: TileProgram) -> str:
    """A factory: sizes that are run-time ones are its parameters without a value."""
    free = [
        letter for letter in "MNK" if letter in program.shape.run_time and used(program, letter)
    ]
    factory = f"@tilelang.jit\ndef {program.name}({', '.join(free)}):\n"
    inner = "@T.prim_func\n" + _signature(program, "main") + indent(_launches(program), TAB)
    return _constants(program) + "\n\n" + factory + indent(inner, TAB) + f"\n{TAB}return main\n"


def _eager(program: TileProgram) -> str:
    """Outputs that start at zero stay arguments; the others are made and returned."""
    outputs = [tensor for tensor in program.tensors if tensor.role == "out"]
    given = [tensor for tensor in program.tensors if tensor.role != "out"]
    names = ", ".join(tensor.name for tensor in given)
    body = _dynamic(program, "T.const")
    body += "".join(f"{tensor.name}: {annotation(tensor)}\n" for tensor in given)
    for tensor in outputs:
        dims = ", ".join(tensor.dims)
        comma = "," if len(tensor.dims) == 1 else ""
        body += f'{tensor.name} = T.empty(({dims}{comma}), "{tensor.dtype}")\n'
    body += _launches(program)
    if outputs:
        body += f"return {', '.join(tensor.name for tensor in outputs)}\n"
    return (
        _constants(program)
        + f"\n\n@tilelang.jit\ndef {program.name}({names}):\n"
        + indent(body, TAB)
    )
