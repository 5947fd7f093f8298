"""What the planner for cores refuses, in whose words, and at which expression."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from cores_harness import HEADER, lowered
from tile2c.transpile.diagnostics import Diagnostic, InputError
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.lower.cores.conversions import no_conversion
from tile2c.transpile.targets.cores import Conversion, CoresTarget

FRAME = """
@tilelang.jit(out_idx=[-1])
def refused(block_M=16, block_N=32):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def main(X: T.Tensor((M, N), "{dtype}"), Y: T.Tensor((M, N), "{dtype}")):
        with T.Kernel(T.ceildiv(M, block_M), threads=64) as bx:
            x = T.alloc_fragment((block_M, block_N), "{dtype}")
            y = T.alloc_fragment((block_N, block_M), "{dtype}")
            m = T.alloc_fragment((block_M,), "{dtype}")
            T.copy(X[bx * block_M, 0], x)
{body}
            T.copy(x, Y[bx * block_M, 0])

    return main
"""

CASES = {
    "T2C525": "T.atomic_add(Y[bx, 0], 1.0)",
    "T2C527": "tx = T.get_thread_binding()\nif tx == 0:\n    Y[bx, 0] = 1.0",
    "T2C524": 'u = T.alloc_fragment((16, 32), "uint8")\n'
    "for i, j in T.Parallel(16, 32):\n"
    '    u[i, j] = T.cast(T.cast(x[i, j], "float16"), "uint8")\n'
    "T.cumsum(u, dim=1)",
    "T2C531": "for i in T.Parallel(block_M):\n    m[i] = X[2 * i, 0]",
    "T2C536": "for i, j in T.Parallel(block_M, block_N):\n    m[i] = x[i, j]",
    "T2C538": "for i, j in T.Parallel(block_M, 16):\n    x[i, j] = x[i, j] + X[0, 0]\n"
    "T.copy(x[:, 4:20], Y[0:block_M, 0:16])",
    "T2C539": "for i, j in T.Parallel(block_M, block_N):\n    x[i, j] = y[2 * j, i]",
    "T2C541": "for i, j in T.Parallel(block_M, block_N):\n    x[i, j] = T.sin(x[i, j])",
    "T2C544": "for i, j in T.Parallel(block_M, block_N):\n"
    "    x[i, j] = T.if_then_else(i * j < 7, x[i, j], 0.0)",
    "T2C547": "T.copy(X[bx * block_M, bx * block_N - 1], x)",
    "T2C530": "for i in T.Parallel(block_M):\n    Y[i, 0] = X[i, 0] + Y[i, 1]",
}


def refusal(path: Path) -> Diagnostic:
    """The error that ends the lowering of a file."""
    try:
        form = lowered(path, {})
    except InputError as error:
        return error.diagnostic
    assert form.plan is None
    return next(item for item in form.diagnostics.items if item.severity == "error")


@pytest.mark.parametrize("code", CASES)
def test_refused_with_place_and_help(code: str, tmp_path: Path) -> None:
    body = "\n".join(" " * 12 + line for line in CASES[code].split("\n"))
    path = tmp_path / "refused.py"
    path.write_text(HEADER + FRAME.format(dtype="float32", body=body), "utf-8")
    found = refusal(path)
    assert found.code == code, found
    assert found.span is not None
    assert found.help


def test_tiles_that_cannot_be_cut_name_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "refused.py"
    text = FRAME.replace("block_M=16, block_N=32", "block_M=1, block_N=65536")
    body = " " * 12 + "T.reduce_max(x, m, dim=1)"
    path.write_text(HEADER + text.format(dtype="float32", body=body), "utf-8")
    found = refusal(path)
    assert found.code == "T2C556"
    assert "local memory has 196352" in found.message
    assert [note.text for note in found.notes][:1] == ["x takes 262144 bytes"]


def test_element_types_without_a_vector_form(tmp_path: Path) -> None:
    path = tmp_path / "refused.py"
    path.write_text(HEADER + FRAME.format(dtype="float64", body=" " * 12 + "T.clear(m)"), "utf-8")
    assert refusal(path).code == "T2C522"


@pytest.mark.parametrize(
    ("target", "statement", "message", "help"),
    [
        ("ascendc:ascend910b", "T.atomic_add(Y[bx, 0], 1.0)", "only the sums of a T.gemm", "own"),
        ("bang:mtp_372", "T.atomic_add(Y[bx, 0], 1.0)", "as often as the block has", "Parallel(1)"),
        ("bang:mtp_372", "T.atomic_max(Y[bx, 0], 1.0)", "has no T.atomic_max", "own"),
    ],
)
def test_additions_say_which_form_works(
    target: str, statement: str, message: str, help: str, tmp_path: Path
) -> None:
    path = tmp_path / "refused.py"
    path.write_text(HEADER + FRAME.format(dtype="float32", body=" " * 12 + statement), "utf-8")
    form = lowered(path, {}, target)
    (found,) = form.diagnostics.items
    assert found.code == "T2C525"
    assert message in found.message
    assert found.help is not None and help in found.help


@pytest.mark.parametrize("target", ["ascendc:ascend910b", "bang:mtp_372"])
def test_values_of_eight_bits_are_converted_elsewhere(target: str, tmp_path: Path) -> None:
    path = tmp_path / "refused.py"
    body = (
        "for i, j in T.Parallel(block_M, block_N):\n"
        '    Y[bx * block_M + i, j] = T.cast(x[i, j], "float8_e4m3fn")'
    )
    text = FRAME.replace('Y: T.Tensor((M, N), "{dtype}")', 'Y: T.Tensor((M, N), "float8_e4m3fn")')
    text = text.replace("            T.copy(x, Y[bx * block_M, 0])\n", "")
    lines = "\n".join(" " * 12 + line for line in body.split("\n"))
    path.write_text(HEADER + text.format(dtype="float32", body=lines), "utf-8")
    found = next(i for i in lowered(path, {}, target).diagnostics.items if i.severity == "error")
    assert found.code == "T2C522"
    assert found.help is not None and "outside the kernel" in found.help


def test_bytes_are_no_transpose_and_the_type_is_to_blame(tmp_path: Path) -> None:
    path = tmp_path / "refused.py"
    body = " " * 12 + "for i, j in T.Parallel(block_N, block_M):\n" + " " * 16 + "y[i, j] = x[j, i]"
    path.write_text(HEADER + FRAME.format(dtype="int8", body=body), "utf-8")
    found = refusal(path)
    assert found.code == "T2C539"
    assert "exchanges rows and columns of x" in found.message
    assert found.message.endswith("does not transpose int8")
    assert found.help == "convert it to float16 by T.copy first, and transpose that"


@pytest.mark.parametrize(
    ("src", "dst", "help"),
    [
        (
            "float32",
            "float8_e4m3fn",
            "the vector unit of this target has no float8_e4m3fn: use another type",
        ),
        ("a", "b", "go through c or d"),
        ("b", "float32", "from b it reaches a"),
    ],
)
def test_conversions_that_are_missing(src: str, dst: str, help: str) -> None:
    way = Conversion(modes=("x",))
    pairs = [("float32", "a"), ("a", "c"), ("a", "d"), ("c", "b"), ("d", "b"), ("b", "a")]
    target = SimpleNamespace(conversions=dict.fromkeys(pairs, way))
    types = [DType(name=name, kind="float", bits=8) for name in (src, dst)]
    found = no_conversion(*types, cast(CoresTarget, target), None).diagnostic
    assert found.message == f"the vector unit does not convert {src} to {dst}"
    assert found.help == help
