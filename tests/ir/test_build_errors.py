"""What the build refuses or warns about: code, place and message."""

from __future__ import annotations

import pytest
from normal_text import body, problems

TWO = "A: T.Tensor((64,), T.float32), B: T.Tensor((64,), T.int32)"


def only(statements: str, params: str = TWO, threads: int = 32) -> str:
    """The one problem of a kernel with these statements."""
    found = problems(body(statements, params, threads))
    assert len(found) == 1, found
    return found[0]


EXPRESSIONS = {
    "A[0] = x": "T2C230 4:16 `x` is not defined",
    "A[0] = T.foo(A[1])": "T2C231 4:16 T.foo cannot stand in an expression",
    "A[0] = A[1, 2]": "T2C232 4:16 A has 1 dimension but is given 2 indices",
    "A[0, 0] = 1": "T2C232 4:9 A has 1 dimension but is given 2 indices",
    "A[0] = B[0] / B[1]": "T2C233 4:16 `/` between int32 and int32 is ambiguous",
    "A[0] = A[0] // A[1]": (
        "T2C234 4:16 `//` between float32 and float32: it is for integers only"
    ),
    "A[0] = A[0] % 2": "T2C234 4:16 `%` between float32 and int32: it is for integers only",
    "A[0] = A[0] ** 2": "T2C235 4:16 `**` on a device value",
    "if B[0] and B[1] > 0:\n    A[0] = 1": (
        "T2C236 4:12 `and` needs bools, but this side is int32"
    ),
    "B[0] = 3000000000": (
        "T2C237 4:16 3000000000 does not fit int32, which holds -2147483648 to 2147483647"
    ),
    "B[0] = B[1] // 0": "T2C238 4:16 division by zero: the right side of `//` is 0",
    "A[0] = A[0] / 0.0": "T2C238 4:16 division by zero: the right side of `/` is 0",
    "A[0] = A[0] & 1": "T2C240 4:16 `&` is for integers and bools, not for float32",
    "A[0] = A[A[0]]": "T2C240 4:18 an index of A is float32: it has to be an integer",
    "A[0] = max(A[0], A[1])": "T2C241 4:16 Python's `max` does not work on device values",
    "A[0] = T.exp()": "T2C242 4:16 T.exp needs `x`",
    "A[0] = T.exp(A[0], 3)": "T2C242 4:28 T.exp takes 1 positional arguments",
    "A[0] = A": "T2C246 4:16 A is a whole buffer: an expression needs one element of it",
    "B[0] = A[0]": "T2C244 4:16 B[0] holds int32: this float32 loses its fraction",
    "for i in T.serial(0, 4):\n    x = A[i]\nA[0] = x": (
        "T2C239 6:16 `x` was bound inside the loop over `i` and means nothing after it"
    ),
    "for i in T.serial(0, 4):\n    i = A[0]": (
        "T2C245 5:13 `i` is a loop variable: it cannot be changed"
    ),
    "A = B[0]": "T2C245 4:9 `A` is a buffer: it cannot be bound to something else",
}


@pytest.mark.parametrize("statements", EXPRESSIONS)
def test_expressions(statements: str) -> None:
    assert only(statements) == EXPRESSIONS[statements]


def test_literals_have_to_fit() -> None:
    params = "H: T.Tensor((8,), T.float16), U: T.Tensor((8,), T.uint8)"
    assert only("H[0] = 70000", params).startswith("T2C237 4:16 70000 does not fit float16")
    assert only("U[0] = -1", params).startswith("T2C237 4:16 -1 does not fit uint8")
    assert only("U[0] = U[1] & 300", params).startswith("T2C237 4:16 300 does not fit uint8")


def test_a_name_of_an_if_is_gone_after_it() -> None:
    text = "x = A[0]\nif x > 1.0:\n    x = A[1]\nA[2] = x"
    assert only(text) == "T2C239 7:16 `x` was bound inside the `if` and means nothing after it"


def test_one_mistake_is_reported_once_and_the_next_is_found() -> None:
    found = problems(body("x = nothing\nA[0] = x + 1\nA[1] = x\nB[0] = B[1] / B[2]", TWO))
    assert [line[:7] for line in found] == ["T2C230 ", "T2C233 "]


TILES = "A: T.Tensor((64, 64), T.float16), C: T.Tensor((64, 64), T.float32)"
ALLOCATE = """
S = T.alloc_shared((64, 32), T.float16)
W = T.alloc_shared((32, 64), T.float16)
V = T.alloc_shared((64, 64), T.float16)
F = T.alloc_fragment((64, 64), T.float32)
R = T.alloc_fragment((64,), T.float32)
T.fill(S[0:64, 0:32], 0)
T.fill(W[0:32, 0:64], 0)
T.fill(V[0:64, 0:64], 0)
T.fill(F[0:64, 0:64], 0)
T.fill(R[0:64], 0)
"""
STATEMENTS = {
    "T.copy(A[0:64, 0:64], S[0:64, 0:32])": (
        "T2C301 14:9 A is [64, 64] here but S is [64, 32]: T.copy needs equal shapes"
    ),
    "T.copy(A[0:64, 0], S[0:64, 0:32])": (
        "T2C301 14:9 A is [64] here but S is [64, 32]: T.copy needs equal shapes"
    ),
    "T.gemm(S[0:64, 0:32], V[0:64, 0:64], F[0:64, 0:64])": (
        "T2C304 14:16 S is [64, 32] but gemm needs the same K as V, which is [64, 64]"
    ),
    "T.gemm(S[0:64, 0:32], W[0:32, 0:64], F[0:32, 0:64])": (
        "T2C304 14:46 F is [32, 64] but gemm needs the same M as S, which is [64, 32]"
    ),
    "T.gemm(A[0:64, 0:32], W[0:32, 0:64], F[0:64, 0:64])": (
        "T2C306 14:16 A is in global memory: operands of a gemm are in shared memory or fragments"
    ),
    "T.gemm(S[0:64, 0:32], W[0:32, 0:64], V[0:64, 0:64])": (
        "T2C306 14:46 V is in shared memory: a gemm sums up in a fragment"
    ),
    "T.gemm(F[0:64, 0:64], V[0:64, 0:64], F[0:64, 0:64])": (
        "T2C305 14:31 F holds float32 but V holds float16: gemm needs one type"
    ),
    "T.reduce_sum(F[0:64, 0:64], R[0:32], dim=1)": (
        "T2C307 14:37 R is [32] here but T.reduce_sum of F [64, 64] over dimension 1 gives [64]"
    ),
    "T.reduce_bitor(F[0:64, 0:64], R[0:64], dim=1)": (
        "T2C308 14:24 T.reduce_bitor is for integers and bools, not for float32"
    ),
    "T.fill(S[5:70, 0:32], 3)": (
        "T2C311 14:20 the region runs past S along dimension 0: 5+65 > 64"
    ),
    "T.fill(S[0:bx, 0:32], 3)": (
        "T2C312 14:20 the extent bx of S along dimension 0 is not known when the kernel is built"
    ),
    "for i in T.Parallel(4):\n    T.fill(S[0:64, 0:32], 0)": (
        "T2C314 15:13 T.fill is done by the whole block: it cannot stand inside T.Parallel"
    ),
    "tx = T.get_thread_binding(0)\nif tx < 4:\n    T.sync_threads()": (
        "T2C314 16:13 T.sync_threads stands under a condition that differs between threads: some "
        "threads would never arrive"
    ),
    "for i in T.serial(0, 4, 0):\n    T.fill(R[0:64], 0)": (
        "T2C315 14:18 the step of this loop is 0"
    ),
    "break": "T2C315 14:9 `break` stands in no loop",
    "T.atomic_add(F[0, 0], 1.0)": (
        "T2C318 14:22 F is private to the threads: T.atomic_add is for global and shared memory"
    ),
    "for i, j in T.Parallel(64, 64):\n    R[i] = R[i] + F[i, j]": (
        "T2C316 15:13 every iteration over `j` adds to the same elements of R"
    ),
    "for i, j in T.Parallel(64, 64):\n    V[i, 0] = V[i, 0] + F[i, j]": (
        "T2C319 15:13 iterations over `j` of T.Parallel update the same elements of V at once: "
        "a race"
    ),
}


@pytest.mark.parametrize("statements", STATEMENTS)
def test_tile_statements(statements: str) -> None:
    assert only(ALLOCATE + statements, TILES) == STATEMENTS[statements]


def test_reading_what_nothing_has_written() -> None:
    text = """
    S = T.alloc_shared((16, 16), T.float16)
    F = T.alloc_fragment((16, 16), T.float32)
    T.gemm(S[0:16, 0:16], S[0:16, 0:16], F[0:16, 0:16])
    """
    assert problems(body(text)) == [
        "T2C313 6:9 S is read here, but nothing has written it before",
        "T2C313 6:46 the gemm adds to F, which nothing has set before",
    ]
    cleared = text.replace("F[0:16, 0:16])", "F[0:16, 0:16], clear_accum=True)")
    assert [line[:6] for line in problems(body(cleared))] == ["T2C313"]


def test_a_private_array_is_not_spread() -> None:
    text = """
    L = T.alloc_local((4,), T.float32)
    F = T.alloc_fragment((4,), T.float32)
    T.fill(F[0:4], 0)
    for i in T.Parallel(4):
        L[i] = F[i]
    """
    assert problems(body(text)) == [
        "T2C310 8:13 L is private to each thread, but the T.Parallel variable in its index is "
        "spread over threads"
    ]


def test_launches() -> None:
    assert only("S = T.alloc_shared((bx,), T.float32)").startswith("T2C401 4:29 the shape of S")
    assert only("A[0] = 1", threads=2048).startswith("T2C402 3:30 2048 threads in a block")
    assert only("A[0] = 1", threads=0).startswith("T2C402 3:30 threads=0")
    text = "@T.prim_func\ndef f(A):\n    pass\n"
    assert problems(text) == ["T2C247 2:7 parameter `A` of `f` has no type"]
    text = "@T.prim_func\ndef f(n: T.int32):\n    pass\n"
    assert problems(text) == ["T2C404 2:5 `f` launches nothing"]
