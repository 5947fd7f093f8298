"""Products on Ascend's cube cores mean what their tile programs mean, with both checks on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cores_harness import SAMPLES, TYPES, arguments, built, lowered
from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.ir.interpret import run
from tile2c.transpile.lower.cores import print_plan

PRODUCTS = Path(__file__).parent / "products"
Sizes = dict[str, int]

SMALL = {"block_M": 32, "block_N": 48, "block_K": 64}
CORNERS = [{"M": m, "N": n, "K": k} for m, n, k in ((1, 1, 1), (17, 33, 40), (70, 100, 150))]
NOTHING = {"M": 20, "N": 20, "K": 0}
PLANES = [{"M": m, "N": n} for m, n in ((1, 1), (17, 33), (70, 100), (20, 0))]
HALF = {"dtype": "float16", "accum_dtype": "float32", "out_dtype": "float16"}
BRAIN = {"dtype": "bfloat16", "accum_dtype": "float32", "out_dtype": "bfloat16"}
BYTES = {"dtype": "int8", "accum_dtype": "int32", "out_dtype": "int32"}
FLOAT = {"dtype": "float32", "accum_dtype": "float32", "out_dtype": "float32"}
ATTENTION = [
    {"batch": b, "heads": h, "seq_q": q, "seq_kv": k}
    for b, h, q, k in ((1, 1, 5, 7), (2, 2, 70, 70), (1, 1, 130, 200))
]
GROUPED = [
    {"batch": b, "kv_heads": h, "length": n} for b, h, n in ((1, 1, 5), (2, 1, 70), (1, 1, 140))
]

CASES: dict[str, tuple[str, dict[str, object], list[Sizes]]] = {
    "gemm": ("gemm", {}, [*CORNERS, {"M": 130, "N": 150, "K": 70}, NOTHING]),
    "gemm_bias_relu": ("gemm_bias_relu", {}, [*CORNERS, NOTHING]),
    "batched": ("batched_gemm", {}, [{"batch": 2, **sizes} for sizes in CORNERS]),
    "split_k": ("split_k_gemm", {}, [*CORNERS, {"M": 40, "N": 30, "K": 700}, NOTHING]),
    "deep_tiles": ("gemm", {"block_M": 64, "block_N": 256, "block_K": 256}, CORNERS),
    "odd_tiles": ("matmul", {"block_M": 24, "block_N": 40, "block_K": 20}, CORNERS),
    "one_row": ("matmul", {"block_M": 1, "block_N": 40, "block_K": 300}, CORNERS),
    "tall_tiles": ("matmul", {"block_M": 1536, "block_N": 16, "block_K": 16}, CORNERS[:2]),
    "large_tiles": (
        "gemm",
        {"block_M": 256, "block_N": 256},
        [*CORNERS, {"M": 270, "N": 30, "K": 7}],
    ),
    "large_bias": ("gemm_bias_relu", {"block_N": 512}, [*CORNERS, {"M": 20, "N": 600, "K": 20}]),
    "odd_float": (
        "matmul",
        {"block_M": 24, "block_N": 40, "block_K": 20, **FLOAT, "transpose_A": True},
        CORNERS,
    ),
    "deep_float": ("matmul", {"block_M": 96, "block_K": 300, **FLOAT}, CORNERS),
    "odd_bytes": ("matmul", {"block_M": 24, "block_N": 40, "block_K": 20, **BYTES}, CORNERS),
    "staged": ("staged", {}, [*CORNERS, NOTHING]),
    "staged_float": (
        "staged",
        {"dtype": "float32", "transpose_A": True, "block_M": 24, "block_K": 20},
        [*CORNERS, NOTHING],
    ),
    "gelu": ("gelu", {}, [*CORNERS, NOTHING]),
    "dequantize": ("dequantize", {}, CORNERS),
    "gated": ("gated", {}, [*CORNERS, NOTHING]),
    "gated_serial": ("gated", {"stages": 0}, [*CORNERS, NOTHING]),
    "two_products": ("two_products", {}, PLANES),
    "two_types": ("two_types", {}, CORNERS),
    "in_place": ("in_place", {}, [{"M": 1}, {"M": 40}]),
    "attention": ("flash_attention", {"dim": 64, "block_M": 64}, ATTENTION),
    "attention_open": ("flash_attention", {"dim": 64, "causal": False}, ATTENTION),
    "attention_grouped": ("gqa_attention", {"dim": 64}, GROUPED),
} | {
    f"{name}_{order}": ("matmul", {**SMALL, **types, "transpose_A": a, "transpose_B": b}, CORNERS)
    for name, types in (("half", HALF), ("brain", BRAIN), ("bytes", BYTES), ("float", FLOAT))
    for order, a, b in (("nn", False, False), ("nt", False, True), ("tn", True, False))
}

# The rest covers the same mechanisms in other mixtures.
QUICK = {
    "gemm", "gemm_bias_relu", "split_k", "odd_tiles", "odd_float", "gelu", "two_products",
    "two_types", "in_place", "attention", "gated", "half_tn", "bytes_nn", "bytes_tn", "brain_nt",
}  # fmt: skip


def source(name: str) -> Path:
    own = PRODUCTS / f"{name}.py"
    return own if own.exists() else SAMPLES / f"{name}.py"


@pytest.mark.parametrize(
    "case",
    [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in CASES],
)
def test_products_agree_with_the_interpreter(case: str, tmp_path: Path) -> None:
    name, defines, all_sizes = CASES[case]
    form = lowered(source(name), defines)
    assert form.plan is not None, form.diagnostics.items
    kernel = built(source(name), tmp_path, defines)[form.function.name]
    outputs = {p.name for p in form.plan.params if getattr(p, "role", "") == "out"}
    for sizes in all_sizes:
        given = arguments(form.function, sizes, outputs)
        expected = run(form.function, {k: v for k, v in given.items() if k not in outputs})
        kernel(*given.values())
        for array, wanted in expected.items():
            got, want = (np.asarray(x).astype(np.float64) for x in (given[array], wanted))
            near = 1e-2 if np.asarray(given[array]).dtype == TYPES["bfloat16"] else 2e-3
            scale = max(1.0, float(np.abs(want).max(initial=0)))
            np.testing.assert_allclose(
                got, want, rtol=near, atol=near * scale, err_msg=f"{array} at {sizes}"
            )


def plan(name: str, defines: dict[str, object] | None = None) -> str:
    found = lowered(source(name), defines or {}).plan
    assert found is not None
    return print_plan(found)


def test_the_cube_alone_does_what_stores_can_do() -> None:
    for name in ("gemm", "gemm_bias_relu", "batched_gemm", "split_k_gemm", "staged"):
        assert "choice cores: cube  (" in plan(name), name
    assert "add_sums" in plan("split_k_gemm")
    assert "multiply_from" in plan("gemm_bias_relu")


def test_other_work_goes_to_both_vector_cores() -> None:
    for name in ("gelu", "two_products", "flash_attention", "gqa_attention"):
        assert "choice cores: cube cores with 2 vector cores each" in plan(name), name


def test_tiles_are_loaded_ahead() -> None:
    text = plan("gemm")
    assert "tile A_shared: float16 128 x 32, pitch 128, 8192 bytes, in x 2" in text
    assert "tile C_local: float32 128 x 128, pitch 128, 65536 bytes, out x 2" in text


def test_sums_too_large_for_l0c_are_made_in_strips() -> None:
    assert "choice strips: 128 of 256 rows" in plan("gemm", {"block_M": 256, "block_N": 256})
    assert "choice strips: 256 of 512 columns" in plan("gemm_bias_relu", {"block_N": 512})


def test_k_goes_in_parts_that_fit_twice() -> None:
    text = lowered(source("gemm"), {"block_M": 128, "block_N": 128, "block_K": 256}).text
    assert "// K in parts of 128, two of which fit into L0A and L0B" in text


@pytest.mark.parametrize("case", sorted(QUICK))
def test_product_texts_are_as_wide_as_a_page(case: str) -> None:
    name, defines, _ = CASES[case]
    text = lowered(source(name), defines).text
    assert max(len(line) for line in text.split("\n")) <= 100
    assert text.count("#include") == 1


# A round too many, where K is 0, would change the sums of the other product.
CHANGED = {
    "other_cleared": (("W_tile, gate, ", "W_tile, gate, clear_accum=True, "),),
    "one_side": (
        ("W: T.Tensor((N, K)", "W: T.Tensor((N, 64)"),
        ("W[bx * block_N, k * block_K]", "W[bx * block_N, 0]"),
    ),
    "written_again": (
        ("T.gemm(X_tile, W_tile", f"T.clear(X_tile)\n{' ' * 16}T.gemm(X_tile, W_tile"),
    ),
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_round_that_may_change_other_sums_is_refused(change: str, tmp_path: Path) -> None:
    text = source("gated").read_text()
    for old, new in CHANGED[change]:
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = tmp_path / "gated.py"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        lowered(path, {})
    found = raised.value.diagnostic
    lines = text.splitlines()
    assert found.code == "T2C571"
    assert found.span is not None and "T.clear(value)" in lines[found.span.line - 1]
    (note,) = found.notes
    assert note.text.startswith("this loop may run no round")
    assert note.span is not None and "for k in" in lines[note.span.line - 1]
