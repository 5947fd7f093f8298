"""Lowering of T.gemm for cores of which some multiply: the cube core's part of a kernel.

reads   `ir.forms.Launch`        writes  steps of the units MTE2, MTE1, M and FIX
order   roles, fold, begin, tiles, statements, planner
"""

from __future__ import annotations
