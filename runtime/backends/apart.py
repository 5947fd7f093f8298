"""Copies of a call's tensors with nothing near them, so that an access past one cannot hit another.

Arrays of a program may be neighbours: an access outside one tensor is then inside another one, and no
check of bounds can tell. Tensors that overlap are one piece, as the caller made them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tile2c.runtime.tensors import TensorView

ZONE = 1 << 20  # bytes before and behind each piece; nobody touches them, so they are no memory yet
_PAGE = 4096  # addresses keep their remainder, which conditions of launches ask for


@dataclass(slots=True)
class _Piece:
    """Bytes `begin` to `end` of the caller; the copy starts at `start` of `memory`."""

    begin: int
    end: int
    start: int = 0
    memory: Any = None


class Apart:
    """The copies of one call."""

    def __init__(self, tensors: Iterable[TensorView]) -> None:
        self._pieces: list[_Piece] = []
        for begin, end in sorted({(t.address, t.address + t.nbytes) for t in tensors if t.nbytes}):
            last = self._pieces[-1] if self._pieces else None
            if last is not None and begin < last.end:
                last.end = max(last.end, end)
            else:
                self._pieces.append(_Piece(begin, end))
        for piece in self._pieces:
            _copy(piece)

    def address_of(self, tensor: TensorView) -> int:
        """Where the copy of a tensor starts."""
        if not tensor.nbytes:
            return tensor.address
        piece = self._piece_of(tensor)
        if piece is None:  # a workspace
            piece = _Piece(tensor.address, tensor.address + tensor.nbytes)
            self._pieces.append(piece)
            _copy(piece)
        return piece.start + tensor.address - piece.begin

    def copy_back(self, tensor: TensorView) -> None:
        """The caller's tensor gets what its copy holds."""
        if tensor.nbytes:
            ctypes.memmove(tensor.address, self.address_of(tensor), tensor.nbytes)

    def _piece_of(self, tensor: TensorView) -> _Piece | None:
        begin, end = tensor.address, tensor.address + tensor.nbytes
        return next((p for p in self._pieces if p.begin <= begin and end <= p.end), None)


def _copy(piece: _Piece) -> None:
    import numpy as np

    nbytes = piece.end - piece.begin
    piece.memory = np.empty(nbytes + 2 * ZONE + _PAGE, dtype=np.uint8)
    first: int = piece.memory.ctypes.data + ZONE
    piece.start = first + (piece.begin - first) % _PAGE
    ctypes.memmove(piece.start, piece.begin, nbytes)
