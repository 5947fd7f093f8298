"""Arguments of kernels that are not what they should be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tile2c
from attack_harness import elements
from tile2c.transpile.cli.main import main


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> object:
    folder = tmp_path_factory.mktemp("calls")
    source = folder / "input.py"
    params = 'A: T.Tensor((N,), "float32"), s: T.float32, B: T.Tensor((N,), "float32")'
    body = "for i in T.Parallel(128):\n                B[bx * 128 + i] = A[bx * 128 + i] * s"
    source.write_text(elements(params=params, body=body))
    tile2c.build(str(source), str(folder / "out"), target="cuda:sm_80")
    return tile2c.load(str(folder / "out"), backend="emulate", target="cuda:sm_80")["kern"]


def test_bytes_in_the_other_order(kernel: object) -> None:
    swapped = np.ones(4, dtype=np.dtype(np.float32).newbyteorder())
    with pytest.raises(TypeError, match="A is float32 with its bytes in the other order"):
        kernel(swapped, 2.0)  # type: ignore[operator]


def test_an_argument_twice(kernel: object) -> None:
    ones = np.ones(4, dtype=np.float32)
    assert kernel(A=ones, s=2.0)[0] == 2  # type: ignore[operator]
    assert kernel(ones, s=2.0)[0] == 2  # type: ignore[operator]
    for arguments in ((ones, 2.0), (2.0,)):
        with pytest.raises(TypeError):
            kernel(*arguments, A=ones)  # type: ignore[operator]


@pytest.mark.parametrize("value", [np.int64(64), np.int32(64)])
def test_defines_of_numpy(tmp_path: Path, value: object) -> None:
    source = tmp_path / "input.py"
    source.write_text(elements())
    defines = {"N": value}
    kernels = tile2c.build(str(source), str(tmp_path / "out"), target="cuda:sm_80", defines=defines)
    assert list(kernels) == ["kern"]


def test_none_is_a_value(tmp_path: Path) -> None:
    """It is no number that a grid can take; before, the default stood in for it."""
    source = tmp_path / "input.py"
    source.write_text(elements().replace("make(N=None)", "make(N=None, step=128)"))
    source.write_text(source.read_text().replace("T.ceildiv(N, 128)", "T.ceildiv(N, step)"))
    out = str(tmp_path / "out")
    with pytest.raises(tile2c.TranspileError, match="None"):
        tile2c.build(str(source), out, target="cuda:sm_80", defines={"step": None})


def test_a_promise_that_a_value_breaks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "input.py"
    source.write_text(elements())
    command = [str(source), "-o", str(tmp_path / "out"), "-D", "N%8=0"]
    for values in (["-D", "N=12"], ["-D", "kern.N=12"]):
        assert main([*command, *values]) == 2
        assert "N%8=0 contradicts -D" in capsys.readouterr().err
    assert main([*command, "-D", "N=16"]) == 0
