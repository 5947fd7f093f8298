"""Device code as it is traced: before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]


def test_copy_takes_extents_from_the_other_side(kernel: Make) -> None:
    result = kernel(
        """
        tile = T.alloc_shared((64, 32), "float32")
        T.copy(A[bx * 64, 0], tile)
        T.copy(tile, B[bx * 64:(bx + 1) * 64, 0:32])
        T.copy(A[3, 0:32], tile[5, :])
        """
    )
    assert result.body.splitlines()[1:] == [
        "T.copy(A[bx * 64:bx * 64 + 64, 0:32], tile[0:64, 0:32])",
        "T.copy(tile[0:64, 0:32], B[bx * 64:bx * 64 + 64, 0:32])",
        "T.copy(A[3, 0:32], tile[5, 0:32])",
    ]


def test_right_aligned_extents(program: Make) -> None:
    result = program(
        """
        S = T.dynamic("S")

        @T.prim_func
        def heads(A: T.Tensor((2, S, 8, 32), "float16")):
            with T.Kernel(S, threads=128) as i:
                tile = T.alloc_shared((8, 32), "float16")
                T.copy(A[1, i, 0, 0], tile)
        """
    )
    assert "T.copy(A[1, i, 0:8, 0:32], tile[0:8, 0:32])" in result.text


def test_named_extents_survive(kernel: Make) -> None:
    result = kernel(
        """
        tile = T.alloc_shared((64, BN), "float32")
        for k in T.serial(T.ceildiv(N, BN)):
            T.copy(A[0:64, k * BN:(k + 1) * BN], tile)
        """,
        before="BN = 32",
    )
    assert "BN = 32\n" in result.text
    assert "T.copy(A[0:64, k * BN:k * BN + BN], tile[0:64, 0:BN])" in result.body


def test_host_conditions_are_decided_and_device_ones_kept(kernel: Make) -> None:
    result = kernel(
        """
        if FAST and BN % 32 == 0:
            B[0, 0] = 1.0
        else:
            T.undefined_in_the_branch_not_taken()
        if bx < 3 and n > 0:
            B[1, 0] = 2.0
        elif bx == 4:
            B[2, 0] = 3.0
        else:  # the rest
            B[3, 0] = A[0, 0] if bx > 5 else 0.0
        """,
        before="FAST, BN = True, 32",
    )
    assert result.body == (
        "B[0, 0] = 1.0\n"
        "if bx < 3 and n > 0:\n"
        "    B[1, 0] = 2.0\n"
        "elif bx == 4:\n"
        "    B[2, 0] = 3.0\n"
        "else:  # the rest\n"
        "    B[3, 0] = A[0, 0] if bx > 5 else 0.0"
    )


def test_python_numbers_are_build_time(kernel: Make) -> None:
    result = kernel(
        """
        count = 0
        for i in T.serial(4):
            count = count + 1
            B[i, 0] = count
        B[9, 0] = count
        """
    )
    assert result.codes == ["T2C206"]
    assert result.body == "for i in T.serial(0, 4):\n    B[i, 0] = 1\nB[9, 0] = 1"


def test_temporaries_variables_and_aliases(kernel: Make) -> None:
    result = kernel(
        """
        x = A[0, 0] * 2
        x = x + 1
        v = T.alloc_var("int32", 7)
        s = v
        v += 1
        same = B
        same[0, 0] = x + s
        p = q = A[1, 1]
        B[1, 1] = p + q
        """
    )
    assert result.body == (
        "x = A[0, 0] * 2\n"
        "x = x + 1\n"
        "v = T.alloc_var(T.int32, 7)\n"
        "s = v\n"
        "v = v + 1\n"
        "B[0, 0] = x + s\n"
        "p = A[1, 1]\n"
        "q = A[1, 1]\n"
        "B[1, 1] = p + q"
    )


def test_swap(kernel: Make) -> None:
    result = kernel(
        """
        a = T.alloc_var("int32", 1)
        b = T.alloc_var("int32", 2)
        a, b = b, a
        """
    )
    assert result.body.splitlines()[2:] == ["new_a = b", "new_b = a", "a = new_a", "b = new_b"]


def test_swap_of_elements(kernel: Make) -> None:
    result = kernel(
        """
        x = T.alloc_local((2,), "int32")
        x[0], x[1] = x[1], x[0]
        """
    )
    assert result.body.splitlines()[1:] == [
        "new_x_0 = x[1]",
        "new_x_1 = x[0]",
        "x[0] = new_x_0",
        "x[1] = new_x_1",
    ]


def test_loops(kernel: Make) -> None:
    result = kernel(
        """
        for i, j in T.grid(2, 3):
            B[i, j] = 0
        for r in range(8, 0, -2):
            B[r, 0] = 0
        for v in [1, 5]:
            B[v, 0] = v
        for u in T.unroll(4):
            for w in T.vectorized(4):
                B[u, w] = 0
        while n > 3:
            break
        """
    )
    assert result.body == (
        "for i in T.serial(0, 2):\n"
        "    for j in T.serial(0, 3):\n"
        "        B[i, j] = 0\n"
        "for r in T.serial(8, 0, -2):\n"
        "    B[r, 0] = 0\n"
        "B[1, 0] = 1\n"
        "B[5, 0] = 5\n"
        "for u in T.unroll(0, 4):\n"
        "    for w in T.vectorized(4):\n"
        "        B[u, w] = 0\n"
        "while n > 3:\n"
        "    break"
    )


def test_macros_are_inlined_by_value(kernel: Make) -> None:
    result = kernel(
        """
        x = A[0, 0]
        scale(x * 2, 3)
        bump(B[2, bx])
        """,
        before="""
        @T.macro
        def scale(value, factor):
            x = value * factor
            half = BN // 2
            B_at(x, half)

        def B_at(value, k):
            T.print(value + k)

        @T.macro
        def bump(r: T.Ref):
            r += 1

        BN = 32
        """,
    )
    assert result.body == (
        "x = A[0, 0]\n"
        "value = x * 2\n"
        "scale_x = value * 3\n"
        "T.print(scale_x + BN // 2)\n"
        "B[2, bx] = B[2, bx] + 1"
    )


def test_helpers_and_comprehensions(kernel: Make) -> None:
    result = kernel(
        """
        parts = [A[0, k] for k in range(3)]
        B[0, 0] = sum(parts)
        B[1, 0] = relu(A[1, 0])
        accs = [T.alloc_local((4,), "float32") for _ in range(2)]
        accs[1][0] = 1
        """,
        before="""
        def relu(x):
            return T.max(x, 0)
        """,
    )
    assert result.body == (
        "B[0, 0] = A[0, 0] + A[0, 1] + A[0, 2]\n"
        "B[1, 0] = T.max(A[1, 0], 0)\n"
        "accs = T.alloc_local((4,), T.float32)\n"
        "accs_2 = T.alloc_local((4,), T.float32)\n"
        "accs_2[0] = 1"
    )


def test_conversions_have_one_spelling(kernel: Make) -> None:
    result = kernel(
        """
        a = A[0, 0]
        B[0, 0] = T.cast(a, "float16") + T.Cast("float16", a) + a.astype(T.half) + T.float16(a)
        B[0, 1] = T.float32(3) + T.reinterpret("int32", a) - T.infinity("float32")
        B[0, 2] = T.floordiv(n, 2) + T.floormod(n, 3) + T.ceildiv(n, 4) + T.fabs(a)
        """
    )
    assert result.body.splitlines()[1:] == [
        "B[0, 0] = " + " + ".join(["T.cast(a, T.float16)"] * 4),
        "B[0, 1] = T.cast(3, T.float32) + T.reinterpret(a, T.int32) - T.infinity(T.float32)",
        "B[0, 2] = n // 2 + n % 3 + T.ceildiv(n, 4) + T.abs(a)",
    ]


def test_brackets_only_where_they_are_needed(kernel: Make) -> None:
    result = kernel(
        """
        B[0, 0] = (A[0, 0] + (A[0, 1] + A[0, 2])) * 2 - -1.5
        B[0, n - (bx + 1)] = A[(n << 2) + 1, (n if bx > 0 else 3) * 2]
        """
    )
    assert result.body == (
        "B[0, 0] = (A[0, 0] + (A[0, 1] + A[0, 2])) * 2 - -1.5\n"
        "B[0, n - (bx + 1)] = A[(n << 2) + 1, (n if bx > 0 else 3) * 2]"
    )


def test_comments_stay(kernel: Make) -> None:
    result = kernel(
        """
        # first
        # second
        x = A[0, 0]  # behind

        if FAST:
            # inside
            B[0, 0] = x
            # at the end
        for i in T.serial(2):  # the loop
            # body
            B[
                0,  # row
                i,
            ] = x
            # last
        """,
        before="FAST = True",
    )
    assert result.body == (
        "# first\n# second\n"
        "x = A[0, 0]  # behind\n"
        "# inside\n"
        "B[0, 0] = x\n"
        "# at the end\n"
        "for i in T.serial(0, 2):  # the loop\n"
        "    # body\n"
        "    # row\n"
        "    B[0, i] = x\n"
        "    # last"
    )


def test_statements(kernel: Make) -> None:
    result = kernel(
        """
        f = T.alloc_fragment((64, 32), "float32")
        r = T.alloc_fragment((64,), "float32")
        T.clear(f)
        T.fill(f[0:8, :], n)
        T.reduce_sum(f, r)
        T.reduce(f, r, "max", -1, False)
        T.cumsum(f, dim=1)
        T.atomic_add(B[0, 0], r[0])
        T.atomic_add(B[bx * 64, 0], f)
        T.sync_threads()
        T.annotate_l2_hit_ratio({A: 0.5})
        T.annotate_safe_value({A: -1.0})
        """
    )
    assert result.body.splitlines()[2:] == [
        "T.fill(f[0:64, 0:32], 0)",
        "T.fill(f[0:8, 0:32], n)",
        "T.reduce_sum(f[0:64, 0:32], r[0:64], dim=1, clear=True)",
        "T.reduce_max(f[0:64, 0:32], r[0:64], dim=1, clear=False)",
        "T.cumsum(f[0:64, 0:32], f[0:64, 0:32], dim=1, reverse=False)",
        "T.atomic_add(B[0, 0], r[0])",
        "T.atomic_add(B[bx * 64:bx * 64 + 64, 0:32], f[0:64, 0:32])",
        "T.sync_threads()",
        "T.annotate_safe_value({A: -1.0})",
    ]


@pytest.mark.parametrize(
    "head",
    [
        "from tilelang import language as T\n",
        "import tilelang as tl\nT = tl.language\n",
        "import tilelang.language as lang\nT = lang\n",
        "import tilelang.language\nT = tilelang.language\n",
    ],
)
def test_any_alias(program: Make, head: str) -> None:
    result = program(
        """
        from tilelang.language import copy as move, Kernel

        @T.prim_func
        def tested(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
            with Kernel(1) as _:
                move(A, B)
        """,
        head=head,
    )
    assert "with T.Kernel(1, threads=128) as bx:" in result.text
    assert "T.copy(A[0:64], B[0:64])" in result.text


def test_block_indices_are_named(program: Make) -> None:
    result = program(
        """
        @T.prim_func
        def tested(A: T.Tensor((64,), "float32")):
            with T.Kernel(2, 3, threads=(32, 4)):
                A[0] = 1
            x, _ = T.Kernel(4, 5, threads=64)
            A[x] = 2
        """
    )
    assert "with T.Kernel(2, 3, threads=(32, 4)) as (bx, by):" in result.text
    assert "with T.Kernel(4, 5, threads=64) as (x, by):" in result.text
