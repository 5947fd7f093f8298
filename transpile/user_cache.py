"""Where this user's cache lies: what is kept there is made again when it is not there."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache(part: str) -> Path:
    """The folder of one kind of things, which need not exist; TILE2C_CACHE names another parent."""
    chosen = os.environ.get("TILE2C_CACHE")
    if chosen:
        return Path(chosen) / part
    from platformdirs import user_cache_path

    return user_cache_path("tile2c", appauthor=False) / part
