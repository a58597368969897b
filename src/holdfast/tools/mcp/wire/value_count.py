"""Counts the values of a JSON text before it is decoded, piece by piece.

A few megabytes of `[],[],…` are millions of objects: seconds in which nothing else runs, and gigabytes. Text
is cheap, however long it is, so what stands in quotes is not looked into.
"""

import re
from typing import Final

VALUES_MAX: Final = 200_000
_TEXT: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_REST: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
"""A text from its inside on, up to its end or that of the piece."""


class ValueCount:
    """The values so far, at most: each begins after a comma or a bracket."""

    def __init__(self) -> None:
        self.values = 0
        self._is_text = False
        self._kept = b""
        """A backslash at the end of a piece belongs to the next one."""

    @property
    def too_many(self) -> bool:
        """Whether decoding would be felt."""
        return self.values > VALUES_MAX

    def take(self, piece: bytes) -> None:
        """Count the next piece."""
        piece, self._kept = self._kept + piece, b""
        if self._is_text:
            found = _REST.match(piece)
            at = 0 if found is None else found.end()
            if piece[at : at + 1] != b'"':
                self._kept = piece[at:]
                return
            self._is_text = False
            piece = piece[at + 1 :]
        plain, quote, text = _TEXT.sub(b"", piece).partition(b'"')
        self.values += plain.count(b",") + plain.count(b"[") + plain.count(b"{")
        if quote:
            self._is_text = True
            self.take(text)
