"""Plans of the samples are closed programs, and the verifier notices when one is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tile2c.transpile import lower, pipeline, targets
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.lower.plan import Local, Plan, Section
from tile2c.transpile.lower.verify_plan import PlanError, verify
from tile2c.transpile.stage.defines import parse_defines

SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = ("add", "row_sum", "softmax", "gemm", "gemm_bias_relu")


def plan_of(name: str, target: str, *defines: str) -> Plan:
    request = pipeline.Request(
        inputs=(SAMPLES / f"{name}.py",), targets=(target,), defines=parse_defines(defines)
    )
    diagnostics = Diagnostics()
    ((_, function),) = pipeline.functions(request, diagnostics)
    plan = lower.lower(function, targets.find(target), diagnostics)
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
@pytest.mark.parametrize("name", NAMES)
def test_plans_are_closed(name: str, target: str) -> None:
    verify(plan_of(name, target))


def without_locals(plan: Plan) -> Plan:
    (entry,) = plan.entries
    body = tuple(
        stmt
        for stmt in entry.body
        if not (isinstance(stmt, Section) and any(isinstance(x, Local) for x in stmt.body))
    )
    return replace(plan, entries=(replace(entry, body=body),))


def test_an_undeclared_name_is_noticed() -> None:
    with pytest.raises(PlanError, match="is used but not declared"):
        verify(without_locals(plan_of("add", "cuda:sm_80")))


def test_a_launch_of_nothing_is_noticed() -> None:
    plan = plan_of("add", "cuda:sm_80")
    (launch,) = plan.launches
    with pytest.raises(PlanError, match="is no entry"):
        verify(replace(plan, launches=(replace(launch, entry="other"),)))


def test_the_plan_prints_its_reasons() -> None:
    text = lower.print_plan(plan_of("gemm", "cuda:sm_80"))
    assert "read after write of A_shared" in text and "stages of ko = 3" in text and "2 x 2" in text
