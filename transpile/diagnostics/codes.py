"""Every code with one line on what it means. Stable: a code is never given a second meaning."""

from __future__ import annotations

CODES: dict[str, str] = {
    # 0xx: the command line; these end the command with status 2
    "T2C001": "the command line cannot be read",
    "T2C002": "unknown target",
    "T2C003": "an input file is missing",
    "T2C004": "unknown --kernel name",
    "T2C005": "unknown -D name",
    "T2C006": "a -D value cannot be read",
    # 1xx: reading the file, and host code that has to be evaluated
    # 2xx: the tile language: names, types, indices, expressions
    # 3xx: tile statements: copy, gemm, reduce, loops
    # 4xx: memory and launch
    # 5xx: what a target cannot do
    # 6xx: the output folder
    "T2C601": "a file edited by hand is in the way",
    "T2C602": "a name is already held by another source, target or specialisation",
    "T2C603": "a file holds conflict marks",
    "T2C604": "a merge ended in conflicts, which are marked in the file",
    "T2C605": "a clean merge no longer compiles",
    "T2C606": "the folder cannot be read or written",
    "T2C607": "the manifest cannot be read",
    "T2C608": "a file is missing (--check)",
    "T2C609": "a file is stale (--check)",
    "T2C610": "a file was edited by hand",
    "T2C611": "an edited file stays though its kernel is gone from the source",
    "T2C612": "a file that tile2c did not write is in the way",
    "T2C613": "an edited file has no base to merge with",
    "T2C620": "a kernel file does not compile",
    "T2C621": "the compiler of a target is not there",
}
