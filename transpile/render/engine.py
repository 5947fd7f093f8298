"""The Jinja environment of a target: its own templates first, then those it shares."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).resolve().parent.parent.parent / "templates"

SYNTAX: dict[str, Any] = {
    "trim_blocks": True,
    "lstrip_blocks": True,
    "keep_trailing_newline": False,
    "autoescape": False,  # C, not HTML
}


@cache
def environment(folders: tuple[str, ...]) -> Environment:
    """Templates of `folders`, searched in order. A name that is not given is an error."""
    from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
    from tile2c.transpile.render.compiled import CompiledTemplates

    return Environment(
        loader=ChoiceLoader([FileSystemLoader(TEMPLATES / folder) for folder in folders]),
        undefined=StrictUndefined,
        bytecode_cache=CompiledTemplates(SYNTAX),
        **SYNTAX,
    )


def fill(folders: tuple[str, ...], template: str, **fields: object) -> str:
    """The template's text with `fields` in its holes, without a newline at its end."""
    return environment(folders).get_template(template).render(**fields).rstrip("\n")
