"""Reads a source file's bytes and writes a `Source`: syntax tree, comments and positions.

The file is parsed, never imported; so are the sibling modules that it imports.
"""

from tile2c.transpile.read.reader import read_source, whole_file
from tile2c.transpile.read.source import Comment, Source

__all__ = ["Comment", "Source", "read_source", "whole_file"]
