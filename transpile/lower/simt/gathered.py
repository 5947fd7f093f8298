"""The two halves of a reduction that is finished behind its loop: see late_reductions.py."""

from __future__ import annotations

from tile2c.transpile.ir.expr import Buffer
from tile2c.transpile.ir.forms import Reduce
from tile2c.transpile.record import record


@record(kw_only=True)
class Gather(Reduce):
    """What a thread does alone: its elements of src join its own element of dst."""


@record(kw_only=True)
class Meet(Reduce):
    """What threads have gathered comes together: dst = op over the threads that share src's `dim`.

    `part` has dst's shape and is held by the threads that hold src. Without `clear` dst's old value
    takes part once.
    """

    part: Buffer
