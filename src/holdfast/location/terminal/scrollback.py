"""What a terminal has printed last, by the number of its bytes. Pure; one writer, any number of readers.

What must stay true: never more than `bytes_max` are held, whoever reads how slowly; a reader that comes too
late gets what is left, and how much is not. A piece begins and ends at the limits of UTF-8 characters where
the output has any: one whose rest has not come yet is held back, until it comes or the program has ended.
"""

from typing import Final

from holdfast.errors import InvalidInput
from holdfast.schema.terminal import TerminalOutput

SCROLLBACK_BYTES_MAX: Final = 2 * 1024 * 1024
PIECE_BYTES_MAX: Final = 64 * 1024
NOW: Final = -1
"""The cursor of a reader that wants nothing of what was printed before."""
_CHARACTER_BYTES_MAX: Final = 4


class Scrollback:
    """The last bytes of an output that is `end` bytes long so far."""

    def __init__(self, bytes_max: int = SCROLLBACK_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._held = bytearray()
        self.end = 0
        self.complete = False
        """Nothing more will come."""

    def append(self, data: bytes) -> None:
        """The program has printed this."""
        self._held += data
        self.end += len(data)
        if (excess := len(self._held) - self._bytes_max) > 0:
            del self._held[:excess]

    def position(self, cursor: int) -> int:
        """Where a reader with this cursor begins; `InvalidInput` for what no output has had."""
        if cursor == NOW:
            return self.end
        if not 0 <= cursor <= self.end:
            raise InvalidInput(
                f"{cursor} is no place in this output: it has {self.end} bytes; {NOW} is its end"
            )
        return cursor

    def read(self, cursor: int, bytes_max: int = PIECE_BYTES_MAX) -> TerminalOutput:
        """The next piece from the cursor on; it is empty when there is none yet."""
        at = self.position(cursor)
        offset = max(0, at - (self.end - len(self._held)))
        if at < self.end - len(self._held):
            offset = _character_start(self._held)
        piece = bytes(memoryview(self._held)[offset : offset + max(bytes_max, _CHARACTER_BYTES_MAX)])
        if not (self.complete and offset + len(piece) == len(self._held)):
            piece = piece[: len(piece) - unfinished(piece)]
        begin = self.end - len(self._held) + offset
        return TerminalOutput(data=piece, cursor=begin + len(piece), dropped=begin - at)


def _character_start(data: bytearray) -> int:
    """Where the first whole character begins in data whose beginning was cut off."""
    for index, byte in enumerate(data[: _CHARACTER_BYTES_MAX - 1]):
        if byte & 0b1100_0000 != 0b1000_0000:
            return index
    return min(len(data), _CHARACTER_BYTES_MAX - 1)


def unfinished(data: bytes) -> int:
    """How many bytes at the end begin a UTF-8 character whose rest is missing."""
    for count in range(1, min(_CHARACTER_BYTES_MAX, len(data) + 1)):
        byte = data[-count]
        if byte & 0b1100_0000 != 0b1000_0000:  # Not a continuation: here a character begins.
            return count if count < _size(byte) else 0
    return 0


def _size(lead: int) -> int:
    if 0xC2 <= lead <= 0xDF:
        return 2
    if 0xE0 <= lead <= 0xEF:
        return 3
    return 4 if 0xF0 <= lead <= 0xF4 else 1
