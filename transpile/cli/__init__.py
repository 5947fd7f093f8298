"""The command `tile2c`.

reads   the command line          writes  OUT (through `output`), diagnostics on standard error
One file per verb; `main` chooses it and turns what happened into the exit status.
"""
