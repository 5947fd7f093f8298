"""What a function means, in NumPy: the oracle that generated kernels are compared with.

reads   a verified `forms.Function` and arrays        writes  the tensors that it stores to

Blocks run one after the other, and in a block its statements in order. Tile statements are done
whole; scalar statements by all threads in lockstep, under masks where threads differ.
"""

from tile2c.transpile.ir.interpret.run import run
from tile2c.transpile.ir.interpret.state import MeaningError

__all__ = ["MeaningError", "run"]
