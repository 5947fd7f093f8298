"""Sizes that `tile2c run` chooses: small, with a tail, keeping promises."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from tile2c.runtime.errors import RaceError
from tile2c.runtime.records import Argument, KernelRecord, Launch, read_records
from tile2c.transpile.cli.main import main
from tile2c.transpile.cli.run import RunOptions
from tile2c.transpile.cli.run_inputs import arguments_for
from tile2c.transpile.cli.run_once import real_inputs
from tile2c.transpile.cli.run_sizes import default_sizes, given_sizes, other_sizes
from tile2c.transpile.cli.status import UsageProblem


def record(*grid: str, sizes: str = "N", **changes: Any) -> KernelRecord:
    launch = Launch(0, None, "f", (*grid, 1, 1)[:3], (128, 1, 1), 0, None, ())
    values: dict[str, Any] = {
        "parameters": {},
        "defines": (),
        "sizes": tuple(sizes.split()),
        **changes,
    }
    return KernelRecord(
        "f", "cuda:sm_80", "f.cu", "f.py", arguments=(), launches=(launch,), workspace_bytes=None,
        workspace_align=256, workspace_optional=False, modules=(), **values,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (record("(N + 127) / 128"), {"N": 168}),
        (record("ceildiv(N, 1024)"), {"N": 1360}),
        (record("N"), {"N": 9}),
        (record("(N + 3) / 4"), {"N": 6}),
        (record("(N + 7) / 8"), {"N": 12}),
        (record("(N * 64 * 64 + 127) / 128"), {"N": 9}),
        (record("(N * 8 + 127) / 128"), {"N": 24}),
        (record("min((N + 7) / 8, 40)"), {"N": 324}),
        (record("min(((M + 127) / 128) * ((N + 63) / 64), 132)", sizes="M N"), {"M": 168, "N": 80}),
        (record("M * ((N + 2047) / 2048)", sizes="M N"), {"M": 9, "N": 2728}),
        (record("B * M / 64", sizes="B M"), {"B": 9, "M": 80}),
        (record("1", parameters={"block_N": 32}), {"N": 104}),
        (record("1", parameters={"block_N": 1}), {"N": 136}),
        (record("(N + 127) / 128", defines=("N%64=0",)), {"N": 192}),
        (record("(N + 127) / 128", defines=("f.N % 64 = 8",)), {"N": 200}),
    ],
)
def test_default_sizes(found: KernelRecord, expected: dict[str, int]) -> None:
    assert default_sizes(found) == expected


def conditional(*conditions: str | None, sizes: str, shapes: tuple[str, ...] = ()) -> KernelRecord:
    """A kernel of tiles of 128 with an entry for each condition."""
    found = record(*(f"({name} + 127) / 128" for name in sizes.split()), sizes=sizes)
    (launch,) = found.launches
    launches = [
        replace(launch, entry=f"entry{number}", when=condition)
        for number, condition in enumerate(conditions)
    ]
    arguments = [
        Argument(f"A{number}", "tensor", "float16", tuple(shape.split(", ")))
        for number, shape in enumerate(shapes)
    ]
    return replace(found, launches=tuple(launches), arguments=tuple(arguments))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (conditional(None, sizes="N"), []),
        (conditional("N % 8 == 0", None, sizes="N"), [{"N": 171}]),
        (conditional("N % 8 == 0 and A0 % 16 == 0", None, sizes="N M", shapes=("N, M",)),
         [{"N": 171, "M": 168}]),
        (conditional("N % 8 == 0", "M % 8 == 0", None, sizes="N M"), [{"N": 171, "M": 168}]),
        (conditional("N % 8 == 0", None, sizes="N", shapes=("N / 2",)), [{"N": 170}]),
        (conditional("N / 2 % 16 == 0", None, sizes="N", shapes=("N / 2",)), [{"N": 192}]),
        (conditional("N > 100000", "N % 8 == 0", None, sizes="N"), [{"N": 171}]),
        (replace(conditional("N % 8 == 0", None, sizes="N"), defines=("N%8=0",)), []),
        (replace(conditional("N % 8 == 0", None, sizes="N"), requires=("N % 8 == 0",)), []),
    ],
)  # fmt: skip
def test_sizes_for_other_entries(found: KernelRecord, expected: list[dict[str, int]]) -> None:
    assert list(other_sizes(found, default_sizes(found))) == expected


def test_whole_numbers_that_a_grid_asks_for() -> None:
    scalar = Argument("most", "scalar", "int32")
    found = replace(record("(most + 31) / 32", sizes=""), arguments=(scalar,))
    assert default_sizes(found) == {"most": 40}
    assert given_sizes("most=7", found) == {"most": 7}


def test_given_sizes() -> None:
    found = record("N", parameters={"K": 64})
    assert given_sizes("N=5, K=64", found) == {"N": 5}
    with pytest.raises(UsageProblem, match="K is fixed to 64"):
        given_sizes("K=65", found)
    with pytest.raises(UsageProblem, match="f has no size n"):
        given_sizes("n=5", found)


def test_large_tensors_have_fewer_rows_with_a_block_each() -> None:
    image = Argument("X", "tensor", "float16", ("N", 64, 64, 128), "in")
    found = replace(record("(N * 64 * 64 + 127) / 128"), arguments=(image,))
    assert default_sizes(found) == {"N": 2}


def test_conditions_between_sizes_are_met() -> None:
    found = record("(A + 63) / 64", "B", sizes="A B", requires=("B >= A", "X % 16 == 0"))
    sizes = default_sizes(found)
    assert sizes["B"] > sizes["A"] > 64


def test_launches_that_only_prepare_operands_say_nothing() -> None:
    found = record("(N + 127) / 128")
    main = replace(found.launches[0], group=1)
    repack = replace(main, group=0, when="N % 8 != 0", grid=("N * ((N + 2047) / 2048)", 1, 1))
    assert default_sizes(replace(found, launches=(repack, main))) == {"N": 168}
    assert default_sizes(replace(found, launches=(repack,))) == {"N": 2728}


@pytest.mark.parametrize(
    ("sample", "tiles"),
    [
        ("gemm", {"M": 128, "N": 128, "K": 32}),
        ("fp8_gemm", {"M": 128, "N": 128, "K": 128}),
        ("gemm_bias_relu", {"M": 128, "N": 128, "K": 32}),
        ("batched_gemm", {"M": 128, "N": 128, "K": 32}),
        ("conv2d", {}),
        ("flash_attention", {"seq_q": 128, "seq_kv": 32}),
    ],
)
def test_sizes_of_samples_on_hopper_are_small(
    sample: str, tiles: dict[str, int], tmp_path: Path
) -> None:
    source = Path(__file__).parents[2] / "samples" / f"{sample}.py"
    assert main([str(source), "-o", str(tmp_path), "--target", "cuda:sm_90a"]) == 0
    (found,) = read_records(tmp_path)
    sizes = default_sizes(found)
    assert max(sizes.values()) < 500
    assert all(sizes[name] % tile for name, tile in tiles.items())


def test_too_large_sizes_name_the_option() -> None:
    array = Argument("A", "tensor", "float16", ("N", "N", 4096), "in")
    found = replace(record("N"), arguments=(array,))
    with pytest.raises(UsageProblem, match="would have the shape") as raised:
        arguments_for(found, {"N": 2728}, 0, {})
    assert raised.value.help == "give smaller ones: --sizes N=128"


@pytest.mark.parametrize(
    ("option", "message", "help"),
    [
        (
            "block_M%16=0",
            "-D block_M: block_M is a compile-time parameter, and %16=0 is a promise about "
            "run-time sizes",
            "there is K, M, N",
        ),
        ("foo.M=1", "-D foo.M: there is no kernel foo", "there is gemm.M"),
        ("gem.M%16=0", "-D gem.M: there is no kernel gem", "did you mean gemm.M?"),
        ("blok_M=1", "-D blok_M: nothing of that name", "did you mean block_M?"),
    ],
)
def test_defines_of_no_size_say_why(
    option: str, message: str, help: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Path(__file__).parents[2] / "samples" / "gemm.py"
    assert main([str(source), "-o", str(tmp_path), "-D", option]) == 2
    assert capsys.readouterr().err == f"error[T2C005]: {message}\n   = help: {help}\n"


def test_a_failed_check_tells_of_random_places() -> None:
    starts = Argument("starts", "tensor", "int32", ("N",), "in")
    data = Argument("A", "tensor", "float16", ("N",), "in")
    found = replace(record("N"), arguments=(starts, data))
    options = RunOptions(
        **dict.fromkeys(field.name for field in fields(RunOptions))  # type: ignore[arg-type]
    )
    race = RaceError("two threads write A[3]")
    assert real_inputs(options, found, race) == (
        "starts held random numbers; if they are places, --inputs FILE.npz gives real ones"
    )
    assert real_inputs(replace(options, inputs="a.npz"), found, race) is None
    assert real_inputs(options, replace(found, arguments=(data,)), race) is None
