"""Orders that stay only because a dependence could not be disproved are counted, and the text says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tile2c.transpile import lower, pipeline, targets
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.lower.cores.plan import CoresPlan
from tile2c.transpile.lower.plan import Plan
from tile2c.transpile.stage.defines import parse_defines

TESTS = Path(__file__).parents[1]
SAMPLES = TESTS.parent / "samples"
VECTOR = ("add", "row_sum", "softmax")
ALL = (*VECTOR, "gemm", "gemm_bias_relu")
ROWS = (
    "rms_norm", "layer_norm", "online_softmax", "column_sum", "transpose_scale_bias", "gemv", "cumsum",
    "top_k",
)  # fmt: skip
CASES = [
    *(("cuda:sm_80", name) for name in ALL),
    *(("cuda:sm_90a", name) for name in ALL),
    *(("hip:gfx942", name) for name in ALL),
    *((target, name) for target in ("cuda:sm_80", "hip:gfx942") for name in ROWS),
    *(("ascendc:ascend910b", name) for name in (*VECTOR, "cumsum", "int4_gemm")),
]
KEPT = "kept because a dependence could not be disproved"


def request_of(path: Path, target: str) -> pipeline.Request:
    return pipeline.Request(inputs=(path,), targets=(target,), defines=parse_defines(()))


def plan_of(path: Path, target: str) -> Plan | CoresPlan:
    diagnostics = Diagnostics()
    request = request_of(path, target)
    ((_, function),) = pipeline.functions(request, diagnostics)
    plan = lower.lower(function, targets.find(target), diagnostics)
    assert plan is not None, diagnostics.items
    return plan


@pytest.mark.parametrize(("target", "name"), CASES)
def test_every_order_of_the_samples_has_its_dependence(target: str, name: str) -> None:
    assert plan_of(SAMPLES / f"{name}.py", target).unproven == 0


def test_an_order_for_what_may_overlap_says_so() -> None:
    path = TESTS / "lower_cores" / "programs" / "in_place.py"
    target = "ascendc:ascend910b"
    plan = plan_of(path, target)
    assert isinstance(plan, CoresPlan)
    assert plan.unproven == 2
    (kernel,) = pipeline.generate(request_of(path, target), Diagnostics())
    assert kernel.text.count(KEPT) == plan.unproven
