"""What passes between the cube core and the vector cores beside it: memory, and flags that say when.

Both share nothing but global memory. A tile on its way lies in the part of the workspace that its
cores have: one sets a flag when it has written it, the other when it has read it.
"""

from __future__ import annotations

from typing import Literal

from tile2c.transpile.ir import forms
from tile2c.transpile.ir.expr import Buffer
from tile2c.transpile.record import record


@record(kw_only=True)
class Exchange(Buffer):
    """A tensor in the workspace: a tile for each cube core. `ready` and `free` are its flags."""

    ready: str
    free: str


@record(kw_only=True)
class Flag(forms.AuthorSync):
    """Sets a flag when `unit` has done what it was given, or waits for one before all that follows."""

    action: Literal["set", "wait"]
    flag: str
    unit: Literal["MTE2", "MTE3", "FIX", ""] = ""
    why: str = ""
