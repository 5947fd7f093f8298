"""A promise leaves guards out of the text; a call that breaks it is refused, by name, on every target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tile2c

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_promises_stand_in_the_manifest_and_the_head(tmp_path: Path, target: str) -> None:
    from tile2c.transpile.cli.main import main

    options = ["-o", str(tmp_path), "--target", target, "-D", "M%64=0"]
    assert main([str(SAMPLES / "gemm.py"), *options]) == 0
    kernel = tile2c.load(tmp_path, "emulate")["gemm"]
    assert "M % 64 == 0" in kernel.record.requires
    (path,) = [p for p in tmp_path.iterdir() if p.suffix in (".cu", ".hip")]
    assert "M % 64 == 0" in path.read_text().split("#include")[0]
    a, b = np.ones((65, 32), np.float16), np.ones((32, 64), np.float16)
    with pytest.raises(ValueError, match="needs M % 64 == 0, but M = 65"):
        kernel(a, b)
    assert np.allclose(np.asarray(kernel(a[:64], b)), 32)


ASSUMED = """
import tilelang.language as T
M = T.dynamic("M")
N = T.dynamic("N")
@T.prim_func
def more(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    T.assume(M <= 65535)
    {promise}
    with T.Kernel(T.ceildiv(N, 256), M, threads=128) as (bx, by):
        for j in T.Parallel(256):
            # the edge
            if bx * 256 + j < N:
                Y[by, bx * 256 + j] = X[by, bx * 256 + j] + 1
"""


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_a_condition_that_a_promise_decides_leaves_the_text(tmp_path: Path, target: str) -> None:
    from tile2c.transpile.cli.main import main

    texts = {}
    for name, promise in (("plain", ""), ("promised", "T.assume(N % 256 == 0)")):
        source = tmp_path / f"{name}.py"
        source.write_text(ASSUMED.format(promise=promise))
        assert main([str(source), "-o", str(tmp_path / name), "--target", target]) == 0
        (path,) = (tmp_path / name).glob("more.*")
        texts[name] = path.read_text()
    guard = "if (col + v < N)"
    assert guard in texts["plain"] and guard not in texts["promised"]
    assert all("// the edge" in text for text in texts.values())
    kernel = tile2c.load(tmp_path / "promised", "emulate", check="races,memory")["more"]
    x = np.arange(3 * 512, dtype=np.float32).reshape(3, 512)
    assert np.array_equal(np.asarray(kernel(x)), x + 1)
    with pytest.raises(ValueError, match="needs N % 256 == 0, but N = 511"):
        kernel(np.ones((3, 511), np.float32))
