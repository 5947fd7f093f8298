"""Elements that several threads store one after another: the last statement's value stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tile2c
from language_programs import CUDA, HIP, checked, empty, refusal, text_of, values
from numpy.testing import assert_array_equal as same

HOPPER, MUSA = "cuda:sm_90a", "musa:mp_31"
EACH = pytest.mark.parametrize("target", [CUDA, HOPPER, HIP, MUSA])
BARRIER = "__syncthreads();"


def races_without_barrier(folder: Path, target: str, *arguments: object) -> str:
    """What the emulator says when the text, as it lies in the folder, loses its only barrier."""
    out = folder / "out"
    (path,) = [x for x in out.iterdir() if x.is_file() and x.suffix != ".json"]
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    assert sum(BARRIER in line for line in lines) == 1
    kept = [line for line in lines if BARRIER not in line]
    path.write_text("".join(kept), encoding="utf-8")
    (kernel,) = tile2c.load(out, "emulate", target=target, check="races,memory").values()
    with pytest.raises(tile2c.RaceError) as found:
        kernel(*arguments)
    return str(found.value)


TWICE = """
@T.prim_func
def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        for i in T.Parallel(128):
            B[i] = A[i]
        for i in T.Parallel(128):
            B[127 - i] = A[i]
"""


@EACH
def test_a_tensor_that_two_statements_write(tmp_path: Path, target: str) -> None:
    a = values(128)
    same(checked(tmp_path, TWICE, {"A": a, "B": empty(128)}, target)["B"], a[::-1])
    told = races_without_barrier(tmp_path, target, a, empty(128))
    assert "race in B" in told and "writes" in told


AROUND = """
@T.prim_func
def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32"), n: T.int32):
    with T.Kernel(1, threads=128) as bx:
        for k in T.serial(n):
            for i in T.Parallel(128):
                B[(i + k) % 128] = A[i] + k
"""


@EACH
def test_a_statement_that_overwrites_what_other_threads_stored(tmp_path: Path, target: str) -> None:
    a = values(128)
    checked(tmp_path, AROUND, {"A": a, "B": empty(128), "n": 5}, target)
    assert "race in B" in races_without_barrier(tmp_path, target, a, empty(128), 5)


RING = """
@T.prim_func
def main(A: T.Tensor((128,), "float32"), B: T.Tensor((6, 128), "float32"), n: T.int32):
    with T.Kernel(1, threads=128) as bx:
        S = T.alloc_shared((128,), "float32")
        for k in T.serial(n):
            for i in T.Parallel(128):
                S[(i + k) % 128] = A[i] + k
            for i in T.Parallel(128):
                B[k, i] = S[(i + k) % 128]
"""


@EACH
def test_a_ring_in_shared_memory(tmp_path: Path, target: str) -> None:
    """Both statements find an element in the same thread, but not in the next round."""
    a = values(128)
    checked(tmp_path, RING, {"A": a, "B": empty((6, 128)), "n": 6}, target)
    assert "race in S" in races_without_barrier(tmp_path, target, a, empty((6, 128)), 6)


ROUNDS = {
    "a place that a variable moves": """
S = T.alloc_shared((256,), "float32")
v = T.alloc_var("int32")
v = 0
T.clear(S)
for k in T.serial(n):
    for i in T.Parallel(128):
        S[i + v] = A[i] + k
    v = v + 3
    for i in T.Parallel(128):
        B[k, i] = S[i + v]
""",
    "loops that count alike": """
S = T.alloc_shared((128,), "float32")
for k in T.serial(n):
    for i in T.Parallel(128):
        S[(i + k) % 128] = A[i] + k
for k in T.serial(n):
    for i in T.Parallel(128):
        B[k, i] = S[(i + k) % 128]
""",
    "an element of two iterations": """
S = T.alloc_shared((64,), "float32")
for k in T.serial(n):
    for i in T.Parallel(128):
        S[i // 2] = k
    for i in T.Parallel(128):
        B[k, i] = S[i // 2] + A[i]
""",
    "rows that get shorter": """
S = T.alloc_shared((16, 128), "float32")
T.clear(S)
for k in T.serial(n):
    for i, j in T.Parallel(8, 100 - k):
        S[i, j] = S[i, j] + A[j]
for k in T.serial(n):
    for i in T.Parallel(128):
        B[k, i] = S[k % 16, i]
""",
    "while something holds": """
S = T.alloc_shared((128,), "float32")
k = T.alloc_var("int32")
k = 0
while k < n:
    for i in T.Parallel(128):
        S[(i + k) % 128] = A[i] + k
    for i in T.Parallel(128):
        B[k, i] = S[(i + k) % 128]
    k = k + 1
""",
    "a loop around": """
S = T.alloc_shared((4, 128), "float32")
for o in T.serial(3):
    for k in T.serial(n):
        for i in T.Parallel(128):
            S[(k + o) % 4, (i + o) % 128] = A[i] + k + o
        for i in T.Parallel(128):
            B[k, i] = S[(k + o) % 4, (i + o) % 128]
""",
    "from and to a fragment": """
F = T.alloc_fragment((128,), "float32")
S = T.alloc_shared((128,), "float32")
T.copy(A, F)
for k in T.serial(n):
    for i in T.Parallel(128):
        S[(i + k) % 128] = F[i]
    for i in T.Parallel(128):
        F[i] = S[(i + k) % 128] + 1
    T.copy(F, B[k, :])
""",
    "quotients and remainders by what counts": """
S = T.alloc_shared((128, 8), "float32")
T.clear(S)
for k in T.serial(n):
    for i in T.Parallel(128):
        S[i // (k + 1), i % (k + 1)] = S[i // (k + 1), i % (k + 1)] * 2 + A[i]
for k in T.serial(n):
    for i in T.Parallel(128):
        B[k, i] = S[i, k]
""",
    "a narrow type in which several numbers are one": """
S = T.alloc_shared((256,), "float32")
T.clear(S)
for k in T.serial(n):
    for i in T.Parallel(512):
        if i // 256 == k % 2:
            S[T.cast(T.cast(i, "uint8"), "int32")] = S[T.cast(T.cast(i, "uint8"), "int32")] * 2 + k
for k in T.serial(n):
    for i in T.Parallel(128):
        B[k, i] = S[i + k] + A[i]
""",
    "a narrow type that brings numbers back": """
S = T.alloc_shared((512,), "float32")
for k in T.serial(n):
    for i in T.Parallel(256):
        S[T.cast(T.cast(i, "uint8"), "int32")] = i + k
    for i in T.Parallel(128):
        B[k, i] = S[T.cast(T.cast(511 - i, "uint8"), "int32")] + A[i]
""",
    "places from memory": """
S = T.alloc_shared((128,), "float32")
for k in T.serial(n):
    for i in T.Parallel(128):
        S[P[i] // 2] = k
    for i in T.Parallel(128):
        B[k, i] = S[P[i] // 2] + A[i]
""",
}


@pytest.mark.parametrize("case", ROUNDS)
def test_elements_that_change_hands_between_rounds(tmp_path: Path, case: str) -> None:
    head = """
@T.prim_func
def main(
    A: T.Tensor((128,), "float32"), P: T.Tensor((128,), "int32"), B: T.Tensor((6, 128), "float32"),
    n: T.int32,
):
    with T.Kernel(1, threads=128) as bx:
"""
    lines = ROUNDS[case].strip("\n").splitlines()
    text = head + "".join(f"        {line}\n" for line in lines)
    places = np.arange(128, dtype=np.int32)
    given = {"A": values(128), "P": places, "B": empty((6, 128)), "n": 6}
    checked(tmp_path, text, given)
    unsure = "kept because a dependence could not be disproved" in text_of(tmp_path, text)
    assert unsure == (case == "places from memory")


PRODUCT = """
@T.prim_func
def main(
    A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 64), "float16"),
    E: T.Tensor((128, 64), "float16"), C: T.Tensor((128, 64), "float16"),
):
    with T.Kernel(1, threads=256) as bx:
        A_shared = T.alloc_shared((128, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        sums = T.alloc_fragment((128, 64), "float32")
        T.clear(sums)
        for k in T.Pipelined(1, num_stages=2):
            T.copy(A, A_shared)
            T.copy(B, B_shared)
            T.gemm(A_shared, B_shared, sums)
        T.copy(sums, C)
        for i, j in T.Parallel(128, 64):
            C[127 - i, j] = E[i, j]
"""


@pytest.mark.parametrize("target", [CUDA, HOPPER, HIP])
def test_results_that_a_later_statement_replaces(tmp_path: Path, target: str) -> None:
    """On Hopper they do not leave by TMA, which would store them whenever it likes."""
    a, b, e = (
        values((128, 64), "float16"),
        values((64, 64), "float16"),
        values((128, 64), "float16"),
    )
    given = {"A": a, "B": b, "E": e, "C": empty((128, 64), "float16")}
    same(checked(tmp_path, PRODUCT, given, target)["C"], e[::-1])


ALIKE = {
    "every round its own rows": "for i, j in T.Parallel(8, 128): B[k * 8 + i, j] = A[i, j] + k",
    "every round its own columns": "for i, j in T.Parallel(8, 16): B[i, k * 16 + j] = A[i, j]",
    "a thread's own elements": "for i, j in T.Parallel(8, 128): B[i, j] = A[i, j] + k",
    "a quotient and a remainder": "for i in T.Parallel(1024): B[i // 128, i % 128] = k",
    "columns exchanged by row": "for i, j in T.Parallel(8, 128): B[i, j ^ (i % 8)] = A[i, j] + k",
    "one of every two": "for i, j in T.Parallel(8, 64): B[i, 2 * j + k % 2] = A[i, j]",
}


@pytest.mark.parametrize("case", ALIKE)
def test_no_barrier_where_no_element_changes_hands(tmp_path: Path, case: str) -> None:
    head, body = ALIKE[case].split(": ", 1)
    text = f"""
@T.prim_func
def main(A: T.Tensor((8, 128), "float32"), B: T.Tensor((64, 128), "float32")):
    with T.Kernel(1, threads=128) as bx:
        for k in T.serial(8):
            {head}:
                {body}
"""
    checked(tmp_path, text, {"A": values((8, 128)), "B": empty((64, 128))})
    assert BARRIER not in text_of(tmp_path, text)


def test_blocks_of_rows_that_statements_write_beside_each_other(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(A: T.Tensor((64, 32), "float32"), B: T.Tensor((64, 32), "float32")):
    with T.Kernel(1, threads=128) as bx:
        F = T.alloc_fragment((32, 32), "float32")
        T.copy(A[0, 0], F)
        T.copy(F, B[32, 0])
        for i, j in T.Parallel(32, 32):
            B[31 - i, j] = A[32 + i, j]
"""
    checked(tmp_path, text, {"A": values((64, 32)), "B": empty((64, 32))})
    assert BARRIER not in text_of(tmp_path, text)


LAST = """
@T.prim_func
def main(A: T.Tensor((16,), "float32"), B: T.Tensor((1,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        for k in T.serial(16):
            B[0] = A[k]
"""


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_an_element_that_all_threads_store_in_every_round(tmp_path: Path, target: str) -> None:
    """A slow thread must not store an old value last."""
    a = values(16)
    assert checked(tmp_path, LAST, {"A": a, "B": empty(1)}, target)["B"][0] == a[15]
    assert BARRIER in text_of(tmp_path, LAST, target)


HALF = """
@T.prim_func
def main(P: T.Tensor((64,), "int32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        tx = T.get_thread_binding()
        if tx % 2 == 0:
            B[{first}] = 1.0
            B[{second}] = 2.0
"""


def test_where_no_barrier_can_stand(tmp_path: Path) -> None:
    """Places that memory names are the author's; of others it is known that they meet."""
    text = HALF.format(first="tx", second="62 - tx")
    assert "T2C506" in refusal(tmp_path, text) and "both touch B" in refusal(tmp_path, text)
    places = np.arange(64, dtype=np.int32) + 1
    text = HALF.format(first="tx", second="P[tx]")
    found = checked(tmp_path, text, {"P": places, "B": empty(64)})["B"]
    same(found, np.tile(np.float32([1, 2]), 32))


ON_CORES = """
@T.prim_func
def main(
    A: T.Tensor((128, 64), "float16"), E: T.Tensor((128, 64), "float16"),
    C: T.Tensor((128, 64), "float16"),
):
    with T.Kernel(1, threads=128) as bx:
        one = T.alloc_shared((64, 64), "float16")
        two = T.alloc_shared((64, 64), "float16")
        for k in T.serial(4):
            T.copy(E[k % 2 * 64, 0], one)
            for i, j in T.Parallel(64, 64):
                one[i, j] = one[i, j] * 2
            T.copy(one, C[k % 2 * 64, 0])
            T.copy(A[k % 2 * 64, 0], two)
            for i, j in T.Parallel(64, 64):
                two[i, j] = two[i, j] * 4
            T.copy(two, C[k % 2 * 64, 0])
"""


@pytest.mark.parametrize("target", ["ascendc:ascend910b", "bang:mtp_592", "bang:mtp_372"])
def test_units_store_a_core_s_tiles_in_their_order(tmp_path: Path, target: str) -> None:
    a, e = values((128, 64), "float16"), values((128, 64), "float16", 1)
    given = {"A": a, "E": e, "C": empty((128, 64), "float16")}
    same(checked(tmp_path, ON_CORES, given, target)["C"], a * 4)


def test_cores_of_two_kinds_do_not_write_one_tensor(tmp_path: Path) -> None:
    assert "T2C579" in refusal(tmp_path, BOTH_KINDS, "ascendc:ascend910b")


BOTH_KINDS = """
@T.prim_func
def main(
    A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 64), "float16"),
    E: T.Tensor((128, 64), "float16"), C: T.Tensor((128, 64), "float16"),
):
    with T.Kernel(1, threads=128) as bx:
        A_shared = T.alloc_shared((128, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        E_shared = T.alloc_shared((128, 64), "float16")
        sums = T.alloc_fragment((128, 64), "float32")
        T.clear(sums)
        for k in T.Pipelined(1, num_stages=2):
            T.copy(A, A_shared)
            T.copy(B, B_shared)
            T.gemm(A_shared, B_shared, sums)
        T.copy(sums, C)
        T.copy(E, E_shared)
        for i, j in T.Parallel(128, 64):
            E_shared[i, j] = E_shared[i, j] * 2
        T.copy(E_shared, C)
"""
