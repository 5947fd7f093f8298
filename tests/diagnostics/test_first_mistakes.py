"""What a newcomer mistypes in a first matmul: one error, what to type, and no consequence of it beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main

DOCUMENT = Path(__file__).parents[2] / "docs" / "language.md"
A = 'A: T.Tensor((M, K), "float16")'
GEMM = "T.gemm(A_shared, B_shared, C_local)"
COPY = "T.copy(A[by * block_M, ko * block_K], A_shared)"

# old text, new text, code, what the error says or helps with
MISTAKES = [
    (A, 'A: T.Tensor((M, K), "fp16")', "T2C211", "did you mean float16?"),
    (A, 'A: T.Tensor((M, K), "bf16")', "T2C211", "did you mean bfloat16?"),
    (A, 'A: T.Tensor((M, K), "float8")', "T2C211", "did you mean float8_e4m3fn?"),
    (A, 'A: T.Tensor((M, K), "i9")', "T2C211", "is not an element type"),
    (A, 'A: T.Tensor(M, K, "float16")', "T2C242", "T.Tensor((M, N), dtype)"),
    (A, 'A: T.Tensor((M, K), torch.float16)', "T2C111", "torch is not defined"),
    (GEMM, "T.gemm(A_shared, B_shared)", "T2C242", "without C"),
    (GEMM, "T.gemm(A_shared, B_shared, C_local, transposeB=True)", "T2C242", "mean transpose_B?"),
    (GEMM, "T.matmul(A_shared, B_shared, C_local)", "T2C202", "matmul is not a name"),
    (GEMM, "C_local = A_shared @ B_shared", "T2C246", "T.gemm(A, B, C) multiplies tiles"),
    (COPY, "T.copy(A[by * block_M], A_shared)", "T2C232", "A[i, j]"),
    (COPY, "T.copy(A, A_shared)", "T2C301", "make both extents equal"),
    (COPY, "A_shared = A[by * block_M, ko * block_K]", "T2C246", "not the value A_shared\n"),
    ("num_stages=num_stages", "stages=3", "T2C242", "did you mean num_stages?"),
    ("threads=threads", "thread=threads", "T2C242", "did you mean threads?"),
    ("T.ceildiv(K, block_K), num", "K / block_K, num", "T2C233", "`//` for the whole part"),
    ("import tilelang.language as T\n", "", "T2C111", "import tilelang.language as T"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code", "words"), MISTAKES)
def test_one_error_that_says_what_to_type(
    old: str,
    new: str,
    code: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = re.search(r"```python matmul\.py\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None and found[1].count(old) == 1
    monkeypatch.chdir(tmp_path)
    Path("matmul.py").write_text(found[1].replace(old, new))
    assert main(["matmul.py", "-o", "out"]) == 1
    told = capsys.readouterr().err
    assert re.findall(r"^matmul\.py:\d+:\d+: \w+\[(\w+)\]", told, re.MULTILINE) == [code], told
    assert words in told, told
