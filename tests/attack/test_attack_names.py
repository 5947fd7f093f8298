"""Names that mean something in C, in CUDA or in the generated text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tile2c
from tile2c.transpile.cli.main import main
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.lower.rename import entry_name
from tile2c.transpile.pipeline import Request, generate
from tile2c.transpile.stage import parse_defines

PROGRAM = """
import tilelang.language as T

def make({constant}=3):
    {size} = T.dynamic("{size}")

    @T.prim_func
    def {kernel}({a}: T.Tensor(({size},), "float32"), {b}: T.Tensor(({size},), "float32")):
        with T.Kernel(T.ceildiv({size}, 128), threads=32) as bx:
            for i in T.Parallel(128):
                {b}[bx * 128 + i] = {a}[bx * 128 + i] * {constant}

    return {kernel}
"""

NAMES = {"constant": "c", "size": "N", "kernel": "kern", "a": "A", "b": "B"}


def text_of(tmp_path: Path, **names: str) -> tuple[str, dict[str, object]]:
    given = NAMES | names
    path = tmp_path / "input.py"
    path.write_text(PROGRAM.format(**given))
    diagnostics = Diagnostics()
    request = Request(inputs=(path,), targets=("cuda:sm_80",), defines=parse_defines(()))
    (kernel,) = generate(request, diagnostics)
    assert not diagnostics.failed
    return kernel.text, json.loads(json.dumps(kernel.manifest))


@pytest.mark.parametrize("name", ["half", "new", "short", "load_vector", "Pack", "M_PI", "concept"])
def test_arguments_and_sizes_keep_their_names_in_the_manifest(tmp_path: Path, name: str) -> None:
    text, manifest = text_of(tmp_path, a=name)
    assert f"const float* __restrict__ {name}_," in text
    args, sizes = manifest["args"], manifest["sizes"]
    assert isinstance(args, list) and args[0]["name"] == name
    assert name in json.dumps(manifest["launch"]) and f"{name}_" not in json.dumps(manifest)
    text, manifest = text_of(tmp_path, size=name)
    assert f"int {name}_" in text
    sizes, launch = manifest["sizes"], manifest["launch"]
    assert sizes == [name] and isinstance(launch, list)
    assert launch[0]["grid"][0] == f"({name} + 127) / 128"


@pytest.mark.parametrize("name", ["new", "max", "norm", "expf", "load_vector", "select"])
def test_exported_symbols_are_no_words_of_c(tmp_path: Path, name: str) -> None:
    text, manifest = text_of(tmp_path, kernel=name)
    assert re.search(rf"__launch_bounds__\(32\) {name}_kernel\(", text)
    assert manifest["name"] == name and manifest["entry"] == f"{name}_kernel"


def test_constants_at_file_scope_hide_no_function_of_the_library(tmp_path: Path) -> None:
    assert "constexpr int norm_ = 3;" in text_of(tmp_path, constant="norm")[0]
    assert "constexpr int scale = 3;" in text_of(tmp_path, constant="scale")[0]
    assert "const float* __restrict__ norm," in text_of(tmp_path, a="norm")[0]


def test_plain_kernels_keep_their_name() -> None:
    for name in ("gemm", "softmax", "half_gemm", "logf_", "add"):
        assert entry_name(name, frozenset()) == name


@pytest.mark.parametrize(
    ("name", "symbol"), [("größe", "grou00dfe"), ("核", "u6838"), ("naïve", "naive")]
)
def test_letters_beyond_ascii(tmp_path: Path, name: str, symbol: str) -> None:
    """nvcc takes none in the name of a device function; arguments and sizes keep theirs."""
    text, manifest = text_of(tmp_path, kernel=name, a="Ä", size="数")
    assert manifest["name"] == name and manifest["entry"] == symbol
    assert f" {symbol}(" in text and "__restrict__ Ä," in text and "int 数)" in text
    (kernel,) = tile2c.build(
        tmp_path / "input.py", tmp_path / "out", "cuda:sm_80", backend="emulate", check="memory"
    ).values()
    x = np.arange(300, dtype=np.float32)
    y = np.zeros_like(x)
    kernel(x, y)
    assert (y == 3 * x).all()


@pytest.mark.parametrize(
    ("file", "kernel"),
    [
        ("1st.py", "_1st"),
        ("if.py", "_if"),
        ("a b.py", "a_b"),
        ("two.dots.py", "two_dots"),
        ("q\"u'o\\te.py", "q_u_o_te"),
        ("größe.py", "größe"),
    ],
)
def test_kernels_that_are_named_by_their_file(tmp_path: Path, file: str, kernel: str) -> None:
    source = tmp_path / file
    text = PROGRAM.format(**NAMES | {"kernel": "main"}).replace("def make", "def kernel")
    source.write_text(text, encoding="utf-8")
    out = tmp_path / "out put"
    assert main([str(source), "-o", str(out), "--line-info", "--launcher"]) == 0
    assert (out / f"{kernel}.cu").is_file() and (out / f"{kernel}.h").is_file()
    run = ["run", str(out), "--backend", "emulate", "--against", "interpreter"]
    assert main(run) == 0
    assert main([str(source), "-o", str(tmp_path / "normal"), "--emit", "normal"]) == 0
    (normal,) = (tmp_path / "normal").iterdir()
    assert main([str(normal), "-o", str(tmp_path / "again")]) == 0


@pytest.mark.parametrize("file", ["new\nline.py", "tab\t.py", "escape\x1b.py"])
def test_names_that_cannot_stand_in_a_comment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    (tmp_path / file).write_text(PROGRAM.format(**NAMES))
    assert main([str(tmp_path / file), "-o", str(tmp_path / "out")]) == 2
    assert "rename the file" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_outputs_that_cannot_hold_a_name(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "核.py").write_text(PROGRAM.format(**NAMES | {"kernel": "核"}), encoding="utf-8")
    for words in (
        ["核.py", "-o", "out"],
        ["核.py", "--list"],
        ["核.py", "--emit", "plan"],
        ["diff", "核.py", "核.py"],
        ["where", "out/核.cu:20"],
        ["run", "out", "--backend", "emulate", "--sizes", "N=5"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "tile2c", *words],
            cwd=tmp_path,
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": encoding},
        )
        assert done.returncode == 0, done.stderr
        assert b"\\u6838" in done.stdout + done.stderr
