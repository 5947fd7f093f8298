"""Targets: what each chip has and how its dialect spells things. Data, no passes.

A target is one file here plus its folder under templates/. Nothing outside them names a target.
"""

from tile2c.transpile.targets.registry import UnknownTarget, all_targets, find, meant
from tile2c.transpile.targets.target import Target

__all__ = ["Target", "UnknownTarget", "all_targets", "find", "meant"]
