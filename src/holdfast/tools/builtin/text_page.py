"""Reads one page of a text file, in a bounded number of steps, whatever the file holds.

The rest of the file is run through once, to count its lines and to take its fingerprint, up to
`SCAN_BYTES_MAX`; a larger file has neither. What must stay true: memory stays at one page, also when the file
is one endless line.
"""

import hashlib
import os
from typing import BinaryIO

import msgspec

LINE_CHARS_MAX = 2000
SCAN_BYTES_MAX = 64 << 20
CHUNK_BYTES = 1 << 20

# Enough for the longest line that is shown, with one character to tell that it goes on.
_PIECE_BYTES = 4 * (LINE_CHARS_MAX + 1)
_CUT = f"... (line cut at {LINE_CHARS_MAX} characters)"


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Some lines of a file, from `first` on (1 is the first line of the file)."""

    lines: tuple[str, ...]
    first: int
    total: int | None
    """How many lines the file has; None when it is too large to count."""
    more: bool
    sha256: str | None
    """Of the whole file; None when it is too large to read."""

    @property
    def last(self) -> int:
        """The number of the last line here."""
        return self.first + len(self.lines) - 1


def numbered(number: int, line: str) -> str:
    """A line as the model sees it."""
    return f"{number}: {line}"


def page(file: BinaryIO, *, offset: int, lines_max: int, bytes_max: int) -> Page:
    """Read from line `offset`: so many lines, and so many bytes of what is shown, but at least one line."""
    scan = _Scan(file)
    scan.skip(offset - 1)
    lines: list[str] = []
    size = 0
    while scan.bytes <= SCAN_BYTES_MAX:
        if scan.lines + 1 == offset + lines_max:
            break
        line = scan.line()
        if line is None:
            return _page(scan, lines, offset, more=False)
        shown = _shown(line, is_first=scan.lines == 1)
        size += len(numbered(scan.lines, shown).encode()) + 1
        if lines and size > bytes_max:
            return _rest(scan, lines, offset, more=True)
        lines.append(shown)
    return _rest(scan, lines, offset, more=False)


class _Scan:
    """Goes through a file, counting and hashing what it passes."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.hash = hashlib.sha256()
        self.bytes = 0
        self.lines = 0
        self.is_ended = False

    def line(self) -> bytes | None:
        """The beginning of the next line, with its end when it is short; None at the end of the file."""
        start = piece = self._piece()
        if not piece:
            self.is_ended = True
            return None
        self.lines += 1
        while not piece.endswith(b"\n") and self.bytes <= SCAN_BYTES_MAX:
            piece = self._piece()
            if not piece:
                break
        return start

    def _piece(self) -> bytes:
        piece = self.file.readline(_PIECE_BYTES)
        self.hash.update(piece)
        self.bytes += len(piece)
        return piece

    def skip(self, lines: int) -> None:
        """Pass so many lines, chunk by chunk, as far as the file goes and as is allowed."""
        is_whole = True
        while self.lines < lines and self.bytes <= SCAN_BYTES_MAX:
            chunk = self.file.read(CHUNK_BYTES)
            if not chunk:
                self.lines += not is_whole
                return
            found = chunk.count(b"\n")
            if self.lines + found >= lines:
                passed = chunk[: _behind(chunk, lines - self.lines)]
                self.file.seek(len(passed) - len(chunk), os.SEEK_CUR)
                chunk, found = passed, lines - self.lines
            self.hash.update(chunk)
            self.bytes += len(chunk)
            self.lines += found
            is_whole = chunk.endswith(b"\n")

    def rest(self) -> None:
        """Go to the end, or as far as is allowed."""
        last = b"\n"
        while self.bytes <= SCAN_BYTES_MAX:
            chunk = self.file.read(CHUNK_BYTES)
            if not chunk:
                self.is_ended = True
                break
            self.hash.update(chunk)
            self.bytes += len(chunk)
            self.lines += chunk.count(b"\n")
            last = chunk
        if not last.endswith(b"\n"):
            self.lines += 1


def _behind(chunk: bytes, count: int) -> int:
    """Where the line begins that has so many line feeds before it."""
    at = 0
    for _ in range(count):
        at = chunk.index(b"\n", at) + 1
    return at


def _rest(scan: _Scan, lines: list[str], offset: int, *, more: bool) -> Page:
    before = scan.lines
    scan.rest()
    return _page(scan, lines, offset, more=more or scan.lines > before or not scan.is_ended)


def _page(scan: _Scan, lines: list[str], offset: int, *, more: bool) -> Page:
    return Page(
        lines=tuple(lines),
        first=offset,
        total=scan.lines if scan.is_ended else None,
        more=more,
        sha256=scan.hash.hexdigest() if scan.is_ended else None,
    )


def _shown(line: bytes, *, is_first: bool) -> str:
    text = line.decode("utf-8-sig" if is_first else "utf-8", "replace")
    text = text.removesuffix("\n").removesuffix("\r")
    return text if len(text) <= LINE_CHARS_MAX else text[:LINE_CHARS_MAX] + _CUT
