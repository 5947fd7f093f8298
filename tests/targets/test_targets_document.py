"""docs/targets.md says what the descriptions say, and the descriptions what the suite does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tile2c.transpile.targets.describe import document, supports
from tile2c.transpile.targets.registry import FAMILIES, all_targets

TESTS = Path(__file__).parents[1]
DOCUMENT = TESTS.parent / "docs" / "targets.md"
OURS = [target for target in all_targets() if target.family in FAMILIES]


def test_the_document_is_current(request: pytest.FixtureRequest) -> None:
    text = document(OURS)
    if request.config.getoption("--update-golden"):
        DOCUMENT.write_text(text, encoding="utf-8")
    assert DOCUMENT.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("target", OURS, ids=lambda target: target.name)
def test_each_target_says_what_it_supports(target: object) -> None:
    assert supports(target)  # type: ignore[arg-type]


def test_what_is_claimed_is_what_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TESTS / "dialects"))
    for name in ("test_dialect_compile", "test_dialect_samples"):
        sys.modules.pop(name, None)
    import test_dialect_compile
    import test_dialect_samples

    for target in OURS:
        if target.family in ("cuda", "hip", "ascendc", "bang"):
            continue  # tests/compile, tests/hip and tests/emulate_ascendc have theirs
        table = test_dialect_compile.WAVES, test_dialect_compile.LIKE_CUDA
        assert bool(target.compiled) == any(target.name in part for part in table)
        assert bool(target.emulated) == (target.name in test_dialect_samples.TARGETS)
