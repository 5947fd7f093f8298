"""What the tests of the stage share: programs as text in, normal forms and messages out."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.diagnostics.render import as_text, ordered
from tile2c.transpile.read import Source, read_source
from tile2c.transpile.stage import NormalKernel, normalize, parse_defines

HEAD = "import tilelang\nimport tilelang.language as T\n\n"


class Program:
    """One program: its normal forms by name, and its diagnostics."""

    def __init__(self, source: Source, options: tuple[str, ...], only: tuple[str, ...]) -> None:
        self.source = source
        self.diagnostics = Diagnostics()
        found = normalize(source, parse_defines(options), only, self.diagnostics)
        self.kernels: dict[str, NormalKernel] = {kernel.name: kernel for kernel in found}

    @property
    def text(self) -> str:
        """The text of the one kernel."""
        self.must_be_fine()
        (kernel,) = self.kernels.values()
        return kernel.text

    @property
    def body(self) -> str:
        """What stands inside `with T.Kernel(...)`, at the left margin."""
        _, _, rest = self.text.partition("with T.Kernel(")
        return textwrap.dedent(rest.partition("\n")[2]).strip()

    @property
    def messages(self) -> list[str]:
        lines = {self.source.name: self.source.lines}
        found = ordered(self.diagnostics.items)
        return [as_text(item, lambda name: lines.get(name, ())) for item in found]

    @property
    def codes(self) -> list[str]:
        return [item.code for item in ordered(self.diagnostics.items)]

    def must_be_fine(self) -> None:
        assert not self.diagnostics.failed, "\n".join(self.messages)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Program]:
    """`program(text, *defines)`: the text gets the usual imports in front."""
    monkeypatch.chdir(tmp_path)

    def make(text: str, *options: str, only: tuple[str, ...] = (), head: str = HEAD) -> Program:
        path = Path("program.py")
        path.write_text(head + textwrap.dedent(text).lstrip("\n"))
        diagnostics = Diagnostics()
        source = read_source(path, diagnostics)
        assert source is not None, diagnostics.items
        return Program(source, options, only)

    return make


@pytest.fixture
def kernel(program: Callable[..., Program]) -> Callable[..., Program]:
    """`kernel(body)`: the body of a kernel over A, B of shape [M, N], float32, and a scalar n."""

    def make(body: str, *options: str, before: str = "") -> Program:
        text = (
            textwrap.dedent(before)
            + "\nM, N = T.dynamic('M, N')\n\n\n@T.prim_func\n"
            + "def tested(\n    A: T.Tensor((M, N), 'float32'),\n"
            + "    B: T.Tensor((M, N), 'float32'),\n    n: T.int32,\n):\n"
            + "    with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:\n"
            + textwrap.indent(textwrap.dedent(body).strip(), "        ")
            + "\n"
        )
        return program(text, *options)

    return make
