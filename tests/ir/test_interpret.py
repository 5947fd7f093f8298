"""What programs mean: language.md's rules, run by the interpreter."""

from __future__ import annotations

import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ir_programs import ALL, GEMM
from normal_text import body, built
from numpy.typing import NDArray
from tile2c.transpile.ir.interpret import MeaningError, run
from tile2c.transpile.ir.verify import verify

Array = NDArray[Any]


def ran(text: str, *, float64: bool = False, **arguments: Any) -> dict[str, Array]:
    """Tensors after a kernel in normal form; its IR is verified on the way."""
    function = built(text)
    verify(function)
    return run(function, arguments, float64=float64)


def one_block(
    statements: str, params: str, threads: int = 32, **arguments: Any
) -> dict[str, Array]:
    return ran(body(statements, params, threads), **arguments)


RANDOM = np.random.default_rng(7)


def halves(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float16)


# ---- the samples


@pytest.mark.parametrize("name", ALL)
def test_samples_are_verified(name: str) -> None:
    verify(built(ALL[name]))


@pytest.mark.parametrize("float64", [False, True])
@pytest.mark.parametrize("shape", [(100, 130, 77), (128, 128, 32), (1, 1, 1)])
def test_gemm(shape: tuple[int, int, int], float64: bool) -> None:
    m, n, k = shape
    a, b, bias = halves(m, k), halves(k, n), halves(n)
    product = a.astype(np.float64) @ b.astype(np.float64)
    C = ran(GEMM, A=a, B=b, float64=float64)["C"]
    np.testing.assert_allclose(C, product, rtol=1e-12 if float64 else 1e-2, atol=2e-2)
    expected = np.maximum(product + bias, 0)
    C = ran(ALL["gemm_bias_relu"], A=a, B=b, bias=bias, float64=float64)["C"]
    np.testing.assert_allclose(C, expected, rtol=1e-12 if float64 else 1e-2, atol=2e-2)


def test_vector_samples() -> None:
    a, b = RANDOM.standard_normal((2, 1500)).astype(np.float32)
    np.testing.assert_array_equal(ran(ALL["add"], A=a, B=b)["C"], a + b)
    x = RANDOM.standard_normal((13, 777)).astype(np.float32)
    np.testing.assert_allclose(ran(ALL["row_sum"], X=x)["Y"], x.sum(1), rtol=1e-4, atol=1e-4)
    x = halves(3, 8192)
    e = np.exp(x.astype(np.float64))
    expected = e / e.sum(1, keepdims=True)
    np.testing.assert_allclose(ran(ALL["softmax"], X=x)["Y"], expected, rtol=2e-3, atol=1e-6)
    exact = ran(ALL["softmax"], X=x, float64=True)["Y"]
    assert exact.dtype == np.float64
    np.testing.assert_allclose(exact, expected, rtol=1e-6)


def test_a_loop_without_end_is_an_error() -> None:
    statements = """
        v = T.alloc_var(T.int32, 0)
        while v < 5:
            v = v * 2
        A[0] = v
    """
    start = time.perf_counter()
    with pytest.raises(MeaningError, match="this loop is still running after 50000 rounds"):
        one_block(statements, "A: T.Tensor((1,), T.int32)", A=np.zeros(1, np.int32))
    assert time.perf_counter() - start < 60


def test_a_gemm_of_512_is_quick() -> None:
    function, a, b = built(GEMM), halves(512, 512), halves(512, 512)
    start = time.process_time()
    run(function, {"A": a, "B": b})
    assert time.process_time() - start < 5  # some 0.2 s on an idle machine


# ---- arguments


def test_arguments_are_checked_and_left_alone() -> None:
    function = built(ALL["add"])
    a = np.ones(5, np.float32)
    c = np.zeros(5, np.float32)
    assert run(function, {"A": a, "B": a, "C": c})["C"][0] == 2
    assert c[0] == 0
    with pytest.raises(ValueError, match="add needs B"):
        run(function, {"A": a})
    with pytest.raises(ValueError, match=r"B is \(4,\), but add needs \(5,\)"):
        run(function, {"A": a, "B": a[:4]})
    with pytest.raises(TypeError, match="A holds float32, not float64"):
        run(function, {"A": a.astype(np.float64), "B": a})
    with pytest.raises(ValueError, match="add has no parameter D"):
        run(function, {"D": a})


def test_outputs_start_as_poison() -> None:
    out = one_block(
        "O[0] = 1\nP[0] = 1", "O: T.Tensor((3,), T.float32), P: T.Tensor((3,), T.int32)"
    )
    assert np.isnan(out["O"][1:]).all() and out["O"][0] == 1
    assert out["P"].view(np.uint32).tolist() == [1, 0xCDCDCDCD, 0xCDCDCDCD]


def test_scalars_and_promises() -> None:
    text = """
    n = T.dynamic("n")

    @T.prim_func
    def scale(A: T.Tensor((n,), T.float16), B: T.Tensor((n,), T.float16), alpha: T.float32):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] * alpha
    """
    a = halves(100)
    assert np.array_equal(ran(text, A=a, alpha=0.1)["B"], (a * np.float32(0.1)).astype(np.float16))
    assumed = built(text, promises={"n": 16}).assumptions
    assert len(assumed) == 1


# ---- out of bounds


def test_outside_a_tensor_loads_are_zero_and_stores_are_dropped() -> None:
    text = """
    for i in T.Parallel(8):
        O[i - 2] = A[i - 4] + 1.0
    """
    params = "A: T.Tensor((6,), T.float32), O: T.Tensor((4,), T.float32)"
    a = np.arange(1, 7, dtype=np.float32)
    assert one_block(text, params, A=a)["O"].tolist() == [1, 1, 2, 3]


def test_each_dimension_is_checked_by_itself() -> None:
    text = "for i, j in T.Parallel(4, 4):\n    O[i, j] = A[i, j + 2]"
    params = "A: T.Tensor((4, 4), T.float32), O: T.Tensor((4, 4), T.float32)"
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    expected = np.zeros((4, 4), np.float32)
    expected[:, :2] = a[:, 2:]
    np.testing.assert_array_equal(one_block(text, params, A=a)["O"], expected)


def test_copies_are_clipped_on_every_side() -> None:
    text = """
    S = T.alloc_shared((4, 4), T.float32)
    T.copy(A[n - 2:n - 2 + 4, 2:6], S[0:4, 0:4])
    T.copy(S[0:4, 0:4], O[n - 1:n - 1 + 4, 0:4])
    """
    params = "A: T.Tensor((4, 4), T.float32), O: T.Tensor((4, 4), T.float32), n: T.int32"
    a = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
    out = one_block(text, params, A=a, n=0)["O"]
    tile = np.zeros((4, 4), np.float32)
    tile[2:, :2] = a[:2, 2:]
    np.testing.assert_array_equal(out[:3], tile[1:])
    assert np.isnan(out[3]).all()


def test_a_constant_negative_index_counts_from_the_end() -> None:
    out = one_block("O[-1] = A[-2]", "A: T.Tensor((3,), T.int32), O: T.Tensor((3,), T.int32)",
                    A=np.array([5, 6, 7], np.int32))["O"]  # fmt: skip
    assert out[2] == 6


def test_a_lazy_choice_guards_its_loads() -> None:
    text = """
    S = T.alloc_shared((4,), T.int32)
    T.fill(S[0:4], 3)
    for i in T.Parallel(8):
        O[i] = T.if_then_else(i < 4, S[i], 0)
        P[i] = S[i] if i < 4 and S[i] > 0 else 1
    """
    out = one_block(text, "O: T.Tensor((8,), T.int32), P: T.Tensor((8,), T.int32)")
    assert out["O"].tolist() == [3] * 4 + [0] * 4
    assert out["P"].tolist() == [3] * 4 + [1] * 4
    with pytest.raises(MeaningError, match=r"S\[.\] is outside its shape"):
        one_block(text.replace("if_then_else", "Select"),
                  "O: T.Tensor((8,), T.int32), P: T.Tensor((8,), T.int32)")  # fmt: skip


# ---- threads


def test_scalar_statements_run_for_every_thread() -> None:
    text = """
    tx = T.get_thread_binding(0)
    T.atomic_add(O[0], 1)
    if tx < 5:
        T.atomic_add(O[1], tx)
    O[2 + tx] = tx * tx
    """
    out = one_block(text, "O: T.Tensor((40,), T.int32)", threads=20, O=np.zeros(40, np.int32))["O"]
    assert out[0] == 20 and out[1] == 10
    assert out[2:22].tolist() == [x * x for x in range(20)]


def test_three_thread_dimensions() -> None:
    text = """
    @T.prim_func
    def f(O: T.Tensor((2, 3, 4), T.int32)):
        with T.Kernel(1, threads=(4, 3, 2)) as bx:
            tx, ty, tz = T.get_thread_bindings()
            O[tz, ty, tx] = tx + 10 * ty + 100 * tz
    """
    z, y, x = np.indices((2, 3, 4))
    np.testing.assert_array_equal(ran(text)["O"], x + 10 * y + 100 * z)


def test_private_memory_differs_by_thread() -> None:
    text = """
    tx = T.get_thread_binding(0)
    L = T.alloc_local((4,), T.int32)
    T.copy(A[tx * 4:tx * 4 + 4], L[0:4])
    s = T.alloc_var(T.int32, 0)
    for i in T.serial(0, 4):
        if L[i] > 2:
            continue
        s = s + L[i]
    O[tx] = s
    """
    a = np.arange(32, dtype=np.int32) % 5
    out = one_block(text, "A: T.Tensor((32,), T.int32), O: T.Tensor((8,), T.int32)", 8, A=a)["O"]
    np.testing.assert_array_equal(out, np.where(a > 2, 0, a).reshape(8, 4).sum(1))


def test_each_thread_has_its_own_partial_sum() -> None:
    text = """
    tx = T.get_thread_binding(0)
    s = T.alloc_var(T.float32, 0.0)
    for i in T.Parallel(100):
        s = s + A[i]
    T.atomic_add(O[0], s)
    """
    params = "A: T.Tensor((100,), T.float32), O: T.Tensor((1,), T.float32)"
    a = np.arange(100, dtype=np.float32)
    assert one_block(text, params, A=a, O=np.zeros(1, np.float32))["O"][0] == a.sum()


def test_a_variable_set_inside_parallel() -> None:
    text = """
    t = T.alloc_var(T.int32)
    for i in T.Parallel(128):
        t = A[i] * 2
        if t > 50:
            t = 50
        O[i] = t
    """
    a = np.arange(128, dtype=np.int32)
    params = "A: T.Tensor((128,), T.int32), O: T.Tensor((128,), T.int32)"
    np.testing.assert_array_equal(one_block(text, params, A=a)["O"], np.minimum(2 * a, 50))


def test_serial_loops_inside_parallel_with_loaded_bounds() -> None:
    text = """
    for p in T.Parallel(16):
        for y in T.serial(0, L[p, 0]):
            for x in T.serial(0, L[p, 1]):
                O[p, y, x] = 10 * y + x + 1
    """
    counts = RANDOM.integers(0, 4, (16, 2)).astype(np.int32)
    params = "L: T.Tensor((16, 2), T.int32), O: T.Tensor((16, 3, 3), T.int32)"
    out = one_block(text, params, 16, L=counts, O=np.zeros((16, 3, 3), np.int32))["O"]
    for p, (ys, xs) in enumerate(counts):
        for y in range(3):
            for x in range(3):
                inside = y < ys and x < xs
                assert out[p, y, x] == (10 * y + x + 1 if inside else 0)


def test_sums_over_iterations_are_sums() -> None:
    text = """
    F = T.alloc_fragment((8, 16), T.float32)
    R = T.alloc_fragment((8,), T.float32)
    T.copy(A[0:8, 0:16], F[0:8, 0:16])
    T.fill(R[0:8], 1)
    for i, j in T.Parallel(8, 16):
        R[i] = R[i] + F[i, j]
    T.copy(R[0:8], O[0:8])
    """
    a = RANDOM.integers(-9, 9, (8, 16)).astype(np.float32)
    params = "A: T.Tensor((8, 16), T.float32), O: T.Tensor((8,), T.float32)"
    np.testing.assert_array_equal(one_block(text, params, A=a)["O"], a.sum(1) + 1)


def test_break_while_and_return() -> None:
    text = """
    tx = T.get_thread_binding(0)
    n = T.alloc_var(T.int32, tx)
    steps = T.alloc_var(T.int32, 0)
    while n != 1:
        if steps > 20:
            break
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    O[tx] = steps
    if tx > 4:
        T.thread_return()
    P[tx] = 1
    """
    params = "O: T.Tensor((8,), T.int32), P: T.Tensor((8,), T.int32)"
    out = one_block(text, params, 8, P=np.zeros(8, np.int32))
    assert out["O"].tolist() == [21, 0, 1, 7, 2, 5, 8, 16]
    assert out["P"].tolist() == [1] * 5 + [0] * 3


def test_a_temporary_keeps_the_value_of_its_moment() -> None:
    text = """
    S = T.alloc_shared((4,), T.int32)
    for i in T.Parallel(4):
        S[i] = i
    for i in T.Parallel(4):
        x = S[i]
        S[i] = 9
        O[i] = x
    a = S[0]
    S[0] = 5
    O[4] = a
    """
    assert one_block(text, "O: T.Tensor((5,), T.int32)")["O"].tolist() == [0, 1, 2, 3, 9]


# ---- tile statements


def test_reductions() -> None:
    a = RANDOM.integers(-9, 9, (8, 16)).astype(np.float32)
    expected = {
        "sum": a.sum(1) + 2,
        "max": np.maximum(a.max(1), 2),
        "min": np.minimum(a.min(1), 2),
        "abssum": np.abs(a).sum(1),
        "absmax": np.abs(a).max(1),
    }
    for op, wanted in expected.items():
        text = f"""
        F = T.alloc_fragment((8, 16), T.float32)
        R = T.alloc_fragment((8,), T.float32)
        T.copy(A[0:8, 0:16], F[0:8, 0:16])
        T.fill(R[0:8], 2)
        T.reduce_{op}(F[0:8, 0:16], R[0:8], dim=1, clear=False)
        T.copy(R[0:8], O[0:8])
        """
        params = "A: T.Tensor((8, 16), T.float32), O: T.Tensor((8,), T.float32)"
        np.testing.assert_array_equal(one_block(text, params, A=a)["O"], wanted, err_msg=op)


@pytest.mark.parametrize("propagate", [False, True])
def test_max_and_nan(propagate: bool) -> None:
    text = f"""
    f = T.alloc_fragment((2, 64), T.float16)
    m = T.alloc_fragment((2,), T.float16)
    T.copy(A[0:2, 0:64], f[0:2, 0:64])
    T.fill(m[0:2], -2.0)
    T.reduce_max(f[0:2, 0:64], m[0:2], dim=1, clear=False, nan_propagate={propagate})
    T.copy(m[0:2], O[0:2])
    """
    a = np.zeros((2, 64), np.float16)
    a[0] = -5
    a[1, 7] = np.nan
    params = "A: T.Tensor((2, 64), T.float16), O: T.Tensor((2,), T.float16)"
    out = one_block(text, params, A=a)["O"]
    np.testing.assert_array_equal(out, [-2, np.nan if propagate else 0])


def test_kept_dimension_and_scans() -> None:
    text = """
    S = T.alloc_shared((8, 40), T.float32)
    D = T.alloc_shared((8, 24), T.float32)
    K = T.alloc_shared((1, 40), T.float32)
    T.copy(A[0:8, 0:40], S[0:8, 0:40])
    T.cumsum(S[0:8, 0:24], D[0:8, 0:24], dim=1)
    T.copy(D[0:8, 0:24], O[0:8, 0:24])
    T.cumsum(S[0:8, 0:24], D[0:8, 0:24], dim=0, reverse=True)
    T.copy(D[0:8, 0:24], P[0:8, 0:24])
    T.reduce_max(S[0:8, 0:40], K[0:1, 0:40], dim=0)
    T.copy(K[0:1, 0:40], Q[0:40])
    """
    a = RANDOM.integers(-9, 9, (8, 40)).astype(np.float32)
    tiles = ", ".join(f"{name}: T.Tensor((8, 24), T.float32)" for name in "OP")
    params = f"A: T.Tensor((8, 40), T.float32), {tiles}, Q: T.Tensor((40,), T.float32)"
    out = one_block(text, params, A=a)
    np.testing.assert_array_equal(out["O"], a[:, :24].cumsum(1))
    np.testing.assert_array_equal(out["P"], a[::-1, :24].cumsum(0)[::-1])
    np.testing.assert_array_equal(out["Q"], a.max(0))


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_transposed_operands_and_integer_sums(transposed: tuple[bool, bool]) -> None:
    shapes = [(48, 112)[::-1] if transposed[0] else (48, 112), (112, 80)]
    shapes[1] = shapes[1][::-1] if transposed[1] else shapes[1]
    (a0, a1), (b0, b1) = shapes
    text = f"""
    S = T.alloc_shared(({a0}, {a1}), T.int8)
    W = T.alloc_shared(({b0}, {b1}), T.int8)
    F = T.alloc_fragment((48, 80), T.int32)
    T.copy(A[0:{a0}, 0:{a1}], S[0:{a0}, 0:{a1}])
    T.copy(B[0:{b0}, 0:{b1}], W[0:{b0}, 0:{b1}])
    T.fill(F[0:48, 0:80], 5)
    for k in T.serial(0, 2):
        T.gemm(S[0:{a0}, 0:{a1}], W[0:{b0}, 0:{b1}], F[0:48, 0:80], transpose_A={transposed[0]}, \
transpose_B={transposed[1]}, clear_accum=k == 0)
    T.copy(F[0:48, 0:80], C[0:48, 0:80])
    """
    a = RANDOM.integers(-128, 128, (a0, a1)).astype(np.int8)
    b = RANDOM.integers(-128, 128, (b0, b1)).astype(np.int8)
    params = (
        f"A: T.Tensor(({a0}, {a1}), T.int8), B: T.Tensor(({b0}, {b1}), T.int8), "
        "C: T.Tensor((48, 80), T.int32)"
    )
    left = a.T if transposed[0] else a
    right = b.T if transposed[1] else b
    expected = 2 * (left.astype(np.int32) @ right.astype(np.int32))
    np.testing.assert_array_equal(one_block(text, params, A=a, B=b)["C"], expected)


def test_transpose_and_on_chip_parts() -> None:
    text = """
    S = T.alloc_shared((8, 16), T.float32)
    D = T.alloc_shared((16, 8), T.float32)
    P = T.alloc_shared((4, 4), T.float32)
    T.copy(A[0:8, 0:16], S[0:8, 0:16])
    T.transpose(S[0:8, 0:16], D[0:16, 0:8])
    for i in T.serial(0, 4):
        T.copy(D[i * 4:i * 4 + 4, 4:8], P[0:4, 0:4])
        T.copy(P[0:4, 0:4], O[i * 4:i * 4 + 4, 0:4])
    """
    a = RANDOM.standard_normal((8, 16)).astype(np.float32)
    params = "A: T.Tensor((8, 16), T.float32), O: T.Tensor((16, 4), T.float32)"
    np.testing.assert_array_equal(one_block(text, params, A=a)["O"], a.T[:, 4:])


def test_atomics_convert_and_tiles_count_once() -> None:
    text = """
    S = T.alloc_shared((8,), T.float32)
    T.fill(S[0:8], 1.5)
    T.atomic_add(O[4:12], S[0:8])
    for i in T.Parallel(64):
        T.atomic_add(H[i % 4], A[i])
        T.atomic_max(M[0], A[i])
    """
    params = (
        "A: T.Tensor((64,), T.float32), O: T.Tensor((10,), T.float32), "
        "H: T.Tensor((4,), T.float16), M: T.Tensor((1,), T.float32)"
    )
    a = (np.arange(64) / 8).astype(np.float32)
    out = one_block(
        text, params, A=a, O=np.zeros(10, np.float32), H=np.zeros(4, np.float16),
        M=np.zeros(1, np.float32),
    )  # fmt: skip
    assert out["O"].tolist() == [0] * 4 + [1.5] * 6
    np.testing.assert_array_equal(out["H"], a.reshape(16, 4).sum(0).astype(np.float16))
    assert out["M"][0] == a.max()


def test_several_launches_and_host_conditions() -> None:
    text = """
    n = T.dynamic("n")

    @T.prim_func
    def two(A: T.Tensor((n,), T.float32), B: T.Tensor((n,), T.float32), again: T.int32):
        blocks = T.ceildiv(n, 32)
        with T.Kernel(blocks, threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] + 1.0
        if again > 0:
            with T.Kernel(blocks, threads=32) as bx:
                for i in T.Parallel(32):
                    B[bx * 32 + i] = B[bx * 32 + i] * 2.0
    """
    a = np.arange(50, dtype=np.float32)
    np.testing.assert_array_equal(ran(text, A=a, again=0)["B"], a + 1)
    np.testing.assert_array_equal(ran(text, A=a, again=1)["B"], (a + 1) * 2)
    assert ran(text, A=a[:0], again=1)["B"].shape == (0,)


# ---- numbers


def test_half_operations_round_one_by_one() -> None:
    text = "for i in T.Parallel(64):\n    O[i] = (A[i] + B[i]) * A[i] - B[i]"
    a, b = halves(64), halves(64)
    params = ", ".join(f"{name}: T.Tensor((64,), T.float16)" for name in "ABO")
    expected = (a + b) * a - b
    np.testing.assert_array_equal(one_block(text, params, A=a, B=b)["O"], expected)


def test_a_float_literal_is_float32() -> None:
    text = "for i in T.Parallel(64):\n    O[i] = A[i] * 0.1\n    P[i] = A[i] * 3"
    a = halves(64).astype(ml_dtypes.bfloat16)
    params = ", ".join(f"{name}: T.Tensor((64,), T.bfloat16)" for name in "AOP")
    out = one_block(text, params, A=a)
    wide = a.astype(np.float32)
    np.testing.assert_array_equal(out["O"], (wide * np.float32(0.1)).astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(out["P"], (wide * 3).astype(ml_dtypes.bfloat16))


def test_fp8_saturates_and_keeps_nan() -> None:
    text = "for i in T.Parallel(5):\n    O[i] = A[i]\n    P[i] = A[i]"
    params = (
        "A: T.Tensor((5,), T.float32), O: T.Tensor((5,), T.float8_e5m2), "
        "P: T.Tensor((5,), T.float8_e4m3fn)"
    )
    a = np.array([np.inf, -1e9, 60000, np.nan, 0.3], np.float32)
    out = one_block(text, params, A=a)
    e5m2, e4m3 = (out[name].astype(np.float32) for name in "OP")
    np.testing.assert_array_equal(e5m2[:4], [57344, -57344, 57344, np.nan])
    np.testing.assert_array_equal(e4m3[:4], [448, -448, 448, np.nan])


def test_four_bit_tensors_are_packed() -> None:
    text = "for i in T.Parallel(16):\n    O[i] = A[i]\n    B[i] = A[15 - i]"
    params = "A: T.Tensor((16,), T.int4), O: T.Tensor((16,), T.int8), B: T.Tensor((16,), T.int4)"
    values = np.arange(16)
    packed = (values[0::2] | values[1::2] << 4).astype(np.uint8).view(np.int8)
    out = one_block(text, params, A=packed)
    signed = np.where(values < 8, values, values - 16)
    assert out["O"].tolist() == signed.tolist()
    back = values[::-1]
    assert out["B"].view(np.uint8).tolist() == (back[0::2] | back[1::2] << 4).tolist()


def test_small_integers_widen_in_arithmetic_but_not_in_shifts() -> None:
    text = """
    for i in T.Parallel(4):
        O[i] = A[i] * B[i]
        P[i] = (A[i] << 4) >> 4
    """
    params = ", ".join(f"{name}: T.Tensor((4,), T.int8)" for name in "AB")
    params += ", O: T.Tensor((4,), T.int32), P: T.Tensor((4,), T.int8)"
    a = np.array([100, 0x1F, 8, -1], np.int8)
    out = one_block(text, params, A=a, B=a)
    assert out["O"].tolist() == [10000, 961, 64, 1]
    assert out["P"].tolist() == [4, -1, -8, -1]


def test_rounding_and_bits() -> None:
    text = """
    for i in T.Parallel(4):
        O[i] = T.round(A[i])
        P[i] = T.reinterpret(A[i], T.uint32) >> 31
        Q[i] = T.clamp(A[i], -1.0, 1.0)
    """
    params = ", ".join(f"{name}: T.Tensor((4,), T.float32)" for name in "AOQ")
    params += ", P: T.Tensor((4,), T.uint32)"
    out = one_block(text, params, A=np.array([0.5, 1.5, -0.5, -2.5], np.float32))
    assert out["O"].tolist() == [0, 2, 0, -2]
    assert out["P"].tolist() == [0, 0, 1, 1]
    assert out["Q"].tolist() == [0.5, 1, -0.5, -1]


def test_what_nothing_wrote_is_poison() -> None:
    text = """
    S = T.alloc_shared((4,), T.float32)
    for i in T.Parallel(2):
        S[i] = 1.0
    T.copy(S[0:4], O[0:4])
    """
    out = one_block(text, "O: T.Tensor((4,), T.float32)")["O"]
    np.testing.assert_array_equal(out, [1, 1, np.nan, np.nan])


def test_assertions() -> None:
    text = 'T.device_assert(A[0] > 0.0, "must be positive")'
    one_block(text, "A: T.Tensor((1,), T.float32)", A=np.ones(1, np.float32))
    with pytest.raises(MeaningError, match="must be positive"):
        one_block(text, "A: T.Tensor((1,), T.float32)", A=-np.ones(1, np.float32))
