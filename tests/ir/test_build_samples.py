"""The five samples: what they become, and that building is deterministic."""

from __future__ import annotations

import pytest
from ir_programs import ADD, ALL, GEMM
from normal_text import built, problems
from tile2c.transpile.ir.forms import Gemm, Pipelined
from tile2c.transpile.ir.printer import WIDTH, print_function
from tile2c.transpile.ir.walk import statements

PRINTED_ADD = """\
# Adds.
function add
    size N: int32
    constant block_N: int32 = 1024
    tensor A[N]: float32
    tensor B[N]: float32
    tensor C[N]: float32

    launch (bx < ceildiv(N, block_N)) threads 256 x 1 x 1
        parallel i < block_N  # each element once
            C[bx * block_N + i] = A[bx * block_N + i] + B[bx * block_N + i]
"""


def test_add_in_print() -> None:
    assert print_function(built(ADD)) == PRINTED_ADD


@pytest.mark.parametrize("name", ALL)
def test_building_twice_gives_the_same(name: str) -> None:
    one, two = built(ALL[name]), built(ALL[name])
    assert one == two
    assert print_function(one) == print_function(two)


@pytest.mark.parametrize("name", ALL)
def test_lines_fit_and_nothing_is_reported(name: str) -> None:
    assert all(len(line) <= WIDTH for line in print_function(built(ALL[name])).splitlines())
    assert problems(ALL[name]) == []


def test_statements_carry_quote_and_place() -> None:
    (launch,) = built(GEMM).launches
    loop = next(stmt for stmt in launch.body if isinstance(stmt, Pipelined))
    assert loop.quote == "for ko in T.Pipelined(0, T.ceildiv(K, block_K), num_stages=3)"
    assert loop.span is not None
    gemm = next(stmt for stmt in statements(launch.body) if isinstance(stmt, Gemm))
    assert gemm.quote.startswith("T.gemm(A_shared[0:block_M, 0:block_K],")
    assert launch.quote.startswith("with T.Kernel(")
    assert launch.buffers[0].quote.startswith("A_shared = T.alloc_shared(")


def test_constants_keep_their_names() -> None:
    (launch,) = built(GEMM).launches
    assert [extent.name for extent in launch.buffers[0].shape] == ["block_M", "block_K"]  # type: ignore[attr-defined]
    assert built(GEMM).constants[0].value == 128


COMMENTED = """
@T.prim_func
def f(A: T.Tensor((64,), T.float32)):
    # the launch
    with T.Kernel(1, threads=32) as bx:
        # the thread
        tx = T.get_thread_binding(0)
        # the tile
        S = T.alloc_shared((64,), T.float32)  # in bytes: 256
        # first
        if tx < 4:  # some
            A[tx] = 1.0
            # at the end
        # other
        else:
            # inside
            A[tx] = 2.0  # two
        T.fill(S[0:64], 0.0)
"""
PRINTED_COMMENTS = """\
function f
    tensor A[64]: float32

    # the launch
    launch (bx < 1) threads 32 x 1 x 1
        thread.x is tx
        # the thread
        # the tile
        shared S[64]: float32  # in bytes: 256
        # first
        if tx < 4  # some
            A[tx] = 1.0
        else
            # at the end
            # other
            # inside
            A[tx] = 2.0  # two
        fill S[:] <- 0.0
"""


def test_comments_stay_where_they_were() -> None:
    assert print_function(built(COMMENTED)).strip() == PRINTED_COMMENTS.strip()
