"""Options and fixtures of the whole test run."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files of tests/look anew instead of comparing with them",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests run where `-m` names them, or where they are named themselves."""
    if config.getoption("-m") or any("::" in argument for argument in config.args):
        return
    slow = [item for item in items if item.get_closest_marker("slow") is not None]
    items[:] = [item for item in items if item not in slow]
    config.hook.pytest_deselected(items=slow)
