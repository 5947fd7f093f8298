"""Makes the programs' helpers of tests/language importable by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "language"))
