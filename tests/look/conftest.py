"""Generated texts of the samples, and golden files named after the test that reads them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from look_texts import Case, generate

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def text_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], str]:
    """The text of a case; each is generated once."""

    @cache
    def text(case: Case) -> str:
        return generate(case, tmp_path_factory.mktemp("look"))

    return text


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with golden/TEST/CASE.SUFFIX; `--update-golden` writes it."""

    def compare(text: str, suffix: str) -> None:
        match = re.fullmatch(r"test_(\w+)\[(.+)\]", request.node.name)
        assert match, "a test with golden files has one parameter"
        path = GOLDEN / match[1] / f"{match[2]}{suffix}"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        assert path.exists(), f"{path} is missing: write it with --update-golden, then read it"
        assert text == path.read_text(), f"{path} differs: see it with --update-golden and git diff"

    return compare
